"""Conversion of rows and texts from and to SQLite."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from memadmin import times
from sessions_app.items import Position, StoredItem
from sessions_app.stores.base import (
    FoundSession,
)
from sessions_app.stores.sql_text import as_text

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Characters that stand for bytes that are no UTF-8."""


def as_bytes(text: str) -> bytes:
    """Bytes as SQLite stores them, also for text that is not UTF-8; statements cast them back."""
    return text.encode(errors="surrogateescape" if _NOT_UTF8.search(text) else "surrogatepass")


def as_parameters(wanted: Mapping[str, Any]) -> dict[str, Any]:
    return {name: as_bytes(value) if isinstance(value, str) else value for name, value in wanted.items()}


def stored_item(number: int, created_at: object, byte_count: int, raw: object, raw_tail: object) -> StoredItem:
    written_at = times.of_text(created_at)
    return StoredItem(
        id=str(number),
        position=Position((number,)),
        raw=as_text(raw),
        byte_count=byte_count,
        written_at=written_at,
        raw_tail=as_text(raw_tail),
        has_unreadable_time=written_at is None,
    )


def found_session(
    session_id: str, created_at: object, updated_at: object, last_id: int | None, last_written_at: object
) -> FoundSession:
    readable = [time for time in map(times.of_text, (created_at, updated_at, last_written_at)) if time]
    return FoundSession(
        session_id,
        created_at=min(readable, default=None),
        last_activity_at=max(readable, default=None),
        # Without the id an item that was written within the same second would not be noticed.
        mark=f"{updated_at}/{last_id}"[:64],
    )
