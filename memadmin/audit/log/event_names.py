"""Classification of event types by name: `session.viewed` is a read, `subject.row_updated` a row change. Pure."""

from __future__ import annotations

from collections.abc import Iterable

READS = frozenset(
    {
        "decrypted",
        "downloaded",
        "exported",
        "followed",
        "found",
        "listed",
        "opened",
        "previewed",
        "read",
        "recalled",
        "revealed",
        "searched",
        "shown",
        "viewed",
    }
)
"""Last words of verbs that show something and change nothing."""

ROWS = ("row_inserted", "row_updated", "row_deleted", "table_truncated")
"""The verbs under which triggers record changed rows."""


def noun_of(event_type: str) -> str:
    return event_type.split(".")[0]


def is_read(event_type: str) -> bool:
    return event_type.rsplit("_", 1)[-1].split(".")[-1] in READS


def is_row(event_type: str) -> bool:
    return event_type.endswith(ROWS)


def reads_among(event_types: Iterable[str]) -> list[str]:
    return [event_type for event_type in event_types if is_read(event_type)]


def changes_among(event_types: Iterable[str]) -> list[str]:
    return [event_type for event_type in event_types if not is_read(event_type)]
