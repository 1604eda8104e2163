"""The check of deletions against legal holds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from django.db import connection

from sessions_app.services.deletion_guards import DeletionRefused, guards_deletion

HOLD_TRIGGERS = (
    ("sessions_app_sessionrecord", "hold_refuses_erasure"),
    ("sessions_app_sessionrecord", "hold_refuses_deletion"),
    ("sessions_app_sessionrecord", "hold_keeps_session"),
    ("sessions_app_sessionrecord", "hold_keeps_identity"),
    ("sessions_app_subject", "hold_keeps_merge"),
    ("sessions_app_subject", "hold_refuses_deletion"),
    ("memories_app_memory", "hold_keeps_subject"),
    ("memories_app_signal", "hold_keeps_text"),
    ("memories_app_evidence", "hold_keeps_text"),
    ("memories_app_memoryversion", "hold_refuses_erasure"),
    ("memories_app_memory", "hold_refuses_deletion"),
    ("memories_app_memoryversion", "hold_refuses_deletion"),
    ("memories_app_evidence", "hold_refuses_deletion"),
    ("memories_app_signal", "hold_refuses_deletion"),
    ("memories_app_recall", "hold_refuses_deletion"),
)
"""Tables of other apps and the triggers on them, as `sql/hold_triggers.sql` installs them."""


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


def holds_on(record: UUID | None, subject: UUID | None, labels: Sequence[str] = ()) -> list[int]:
    """Numbers of the holds in force on a session with this subject and these labels, or on a subject. One query."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_holds_on(%s, %s, %s)", [record, subject, list(labels)])
        return [number for (number,) in cursor.fetchall()]


def keep_holds_out() -> None:
    """Keeps holds from being placed until the caller's transaction ends; waits for one that is being placed. One query.

    Later statements of the transaction see the same holds until its end.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT memadmin_first_hold('{}', '{}')")
