"""Occurrences of a text in a stored session, counted without changing it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sessions_app.encryption import SessionSeals
from sessions_app.encryption.envelope_text import decrypt_for_rewrite
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord
from sessions_app.redaction import NestedTooDeep, Redacted, TextToRedact, without_all_text, without_text
from sessions_app.stores import backend_for
from sessions_app.timeline.decode import decode


@dataclass
class OccurrenceCount:
    """Occurrences of a text in a session, or in one item of it. Kept in the run's cursor as JSON."""

    places: int = 0
    items: int = 0
    kept: int = 0
    sealed: int = 0
    compactions: int = 0
    too_deep: list[str] = field(default_factory=list)
    """Ids of items that contain the text and cannot be redacted."""


def no_lease() -> None:
    """For searches of sessions without a lease to keep."""


def count_occurrences(
    record: SessionRecord,
    target_text: TextToRedact | None,
    seals: SessionSeals,
    *,
    item_id: str = "",
    keep: Callable[[], None] = no_lease,
    visit: Callable[[str, str, Redacted], int] | None = None,
    show: int = 0,
) -> OccurrenceCount:
    """Occurrences of a text in a session, or in one item of it; without a text everything in the item counts.

    `keep` is called for each item, and `visit` with id, text and redaction of each item with occurrences, and of each
    compaction block, with at most `show` places; it returns how many more places the next one may show. Raises
    StoreUnavailable and UnknownItem.
    """
    backend, occurrences = backend_for(record.store), OccurrenceCount()
    items = [backend.item(record.session_id, item_id)] if item_id else backend.every_item(record.session_id)
    for item in items:
        keep()
        inside = decrypt_for_rewrite(item, seals)
        if inside is None:
            occurrences.sealed += 1
            continue
        try:
            redacted = redacted_item(inside.text, target_text, show=show)
        except NestedTooDeep:
            occurrences.too_deep.append(item.id)
            continue
        is_block = type_of(item, inside.text) == "compaction"
        occurrences.places += redacted.places
        occurrences.items += bool(redacted.places)
        occurrences.kept += redacted.kept
        occurrences.compactions += is_block
        if visit and (redacted.places or is_block):
            show = visit(item.id, inside.text, redacted)
    return occurrences


def redacted_item(text: str, target_text: TextToRedact | None, *, show: int = 0) -> Redacted:
    """An item without the text, or without all text, and the first `show` places. Raises NestedTooDeep."""
    return without_text(text, target_text, show=show) if target_text else without_all_text(text, show=show)


def with_text(item: StoredItem, text: str) -> StoredItem:
    return StoredItem(
        item.id, item.position, text, item.byte_count, item.written_at, has_unreadable_time=item.has_unreadable_time
    )


def type_of(item: StoredItem, text: str) -> str:
    """Type of an item, if it is compaction or reasoning; most other items are not parsed and give an empty text."""
    if "compaction" not in text and "reasoning" not in text:
        return ""
    return decode(with_text(item, text)).type
