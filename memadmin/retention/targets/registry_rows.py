"""Registry rows of sessions that expire: they go only as they were when a sweep read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from sessions_app.models import SessionRecord

ROWS = SessionRecord._meta.db_table

WATCHED = ("activity_count", "last_activity_at", "subject_id", "agent", "labels", "is_encrypted")
"""Columns at which policies look: a row in which one of them has changed may not be due any more."""

READ_AGAIN = f"SELECT id, {', '.join(WATCHED)} FROM {ROWS} WHERE id = ANY(%s)"
DELETE_AS_READ = f"DELETE FROM {ROWS} WHERE id = ANY(%s) RETURNING id, {', '.join(WATCHED)}"


class StillActive(Exception):
    """An agent wrote to the session, or an operator changed it, after it was selected. Nothing was changed."""


class SessionGone(Exception):
    """Another run or an erasure has taken the session meanwhile. Nothing was changed."""


def refuse_changed(record: SessionRecord) -> None:
    """Raises StillActive if its row changed since it was read, and SessionGone if it is not there any more.

    The row is locked by the deletion. Of one that was gone it made a new row, which goes with the transaction.
    """
    compare([record], READ_AGAIN)


def delete_unchanged(records: Sequence[SessionRecord]) -> dict[str, int]:
    """Deletes the rows; returns their number by table. Raises as `refuse_changed`, and DeletionRefused.

    It waits for writers that have passed the fence, as a mark does; a later one waits for it, and begins a new session.
    """
    compare(records, DELETE_AS_READ)
    return {ROWS: len(records)}


def compare(records: Sequence[SessionRecord], statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, [[record.pk for record in records]])
        now: dict[Any, tuple[Any, ...]] = {key: tuple(values) for key, *values in cursor.fetchall()}
    for record in records:
        if record.pk not in now:
            raise SessionGone
        if now[record.pk] != tuple(getattr(record, name) for name in WATCHED):
            raise StillActive
