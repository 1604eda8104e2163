"""Documents of MongoDBSession: decoding of sessions, and of batches with their items. No queries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from memadmin import times
from sessions_app.items import Position, StoredItem
from sessions_app.stores.base import (
    FoundSession,
    ItemChanged,
    UnknownItem,
)
from sessions_app.stores.paged import both_ends

Document = Mapping[str, Any]

# Number of items in a batch; one if an older SDK wrote it.
BATCH_SIZE = {"$cond": [{"$isArray": "$message_data"}, {"$size": "$message_data"}, 1]}


class Known:
    """A session as found in a stretch of both collections."""

    def __init__(self, session_id: str, row: Document | None) -> None:
        self.session_id, self.row = session_id, row
        self.items: dict[int, int] = {}
        """Number of items, by generation."""

    @property
    def generation(self) -> int:
        return generation_in(self.row) if self.row is not None else max(self.items, default=0)

    @property
    def item_count(self) -> int:
        return self.items.get(self.generation, 0)

    @property
    def unseen_count(self) -> int:
        return sum(self.items.values()) - self.item_count

    @property
    def is_there(self) -> bool:
        """A document without items is what clear_session leaves of a session."""
        return any(self.items.values()) or (self.row is not None and not self.generation)

    def found(self) -> FoundSession:
        row = self.row or {}
        state = (row.get("_seq"), self.generation, row.get("updated_at"), sorted(self.items.items()))
        return FoundSession(
            self.session_id,
            created_at=instant_in(row, "created_at"),
            last_activity_at=instant_in(row, "updated_at"),
            mark=sha256(repr(state).encode()).hexdigest()[:16],
        )


def generation_in(row: Document) -> int:
    """Generation of a session, as the SDK reads it."""
    generation = row.get("_generation", 0)
    return generation if isinstance(generation, int) else 0


def instant_in(row: Document, name: str) -> datetime | None:
    value = row.get(name)
    return times.in_utc(value) if isinstance(value, datetime) else None


def entries_of(batch: Document) -> list[Any]:
    """Entries of a batch; an older SDK wrote each item by itself."""
    stored = batch.get("message_data")
    return stored if isinstance(stored, list) else [stored]


def text_of(entry: Any) -> str:
    """Stored text of an item; of any other type its MongoDB Extended JSON."""
    if isinstance(entry, str):
        return entry
    from bson import json_util

    return json_util.dumps(entry)


def texts_of(batch: Document) -> list[str]:
    return [text_of(entry) for entry in entries_of(batch)]


def items_of(batches: Iterable[Document]) -> Iterator[StoredItem]:
    """Items of some batches, as a page shows them."""
    for batch in batches:
        for index, text in enumerate(texts_of(batch)):
            whole = whole_item(batch, index, text)
            raw, tail = both_ends(text)
            yield StoredItem(whole.id, whole.position, raw, whole.byte_count, whole.written_at, raw_tail=tail)


def whole_item(batch: Document, index: int, text: str) -> StoredItem:
    written_at = getattr(batch["_id"], "generation_time", None)
    size = len(text.encode(errors="surrogatepass"))
    return StoredItem(f"{batch['_id']}-{index}", Position((sequence_of(batch), index)), text, size, written_at)


def sequence_of(batch: Document) -> int:
    sequence = batch.get("seq", 0)
    return int(sequence) if isinstance(sequence, int | float) else 0


def parts_of(item_id: str) -> tuple[Any, int]:
    """Batch id and index in an item id. Raises UnknownItem."""
    from bson import ObjectId

    batch_id, _, place = item_id.rpartition("-")
    if not batch_id or not re.fullmatch(r"0|[1-9][0-9]{0,8}", place) or "\0" in batch_id:
        raise UnknownItem(item_id)
    return ObjectId(batch_id) if re.fullmatch(r"[0-9a-f]{24}", batch_id) else batch_id, int(place)


def places_of(entries: Sequence[Any], wanted: Iterable[tuple[int, str]]) -> set[int]:
    """Current indexes of the wanted items in a batch, which are lower if earlier items were deleted.

    Deleted items have none. Raises ItemChanged if an index has another item now.
    """
    places: set[int] = set()
    for index, text in sorted(wanted):
        before = range(min(index, len(entries) - 1), -1, -1)
        place = next((each for each in before if each not in places and text_of(entries[each]) == text), None)
        if place is not None:
            places.add(place)
        elif index < len(entries):
            raise ItemChanged(index)
    return places
