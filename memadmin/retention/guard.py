"""The check of deletions against legal holds."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.db import connection

from sessions_app.services.deletion_guards import DeletionRefused, guards_deletion


class OnLegalHold(DeletionRefused):
    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(
            f"This data is under the legal hold H-{number}. Nothing was deleted or changed; it can be after the hold is"
            " released."
        )


@guards_deletion
def refuse_held(records: Collection[UUID], subjects: Collection[UUID]) -> None:
    """Raises OnLegalHold. No hold can be placed before the transaction ends. One query."""
    if not (records or subjects):
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_first_hold(%s::uuid[], %s::uuid[])", [list(records), list(subjects)])
        number = cursor.fetchone()[0]
    if number is not None:
        raise OnLegalHold(number)
