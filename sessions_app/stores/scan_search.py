"""Search by scan: reads a store's items page by page, which works for every kind of store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from sessions_app.items import Position, StoredItem
from sessions_app.stores.base import Readable, StoreTooSlow, UnknownItem
from sessions_app.stores.search_protocol import READ_CHARACTERS, Hit, SearchOrder, SliceResult

if TYPE_CHECKING:
    from sessions_app.search_syntax import ParsedSearch

PAGE_ITEMS = 100


class ScanSearch:
    """Implements `ItemSearch` on the pages of a backend.

    The time limit is checked between items: reading one item cannot be interrupted.
    """

    def __init__(self, backend: Readable) -> None:
        self.backend = backend

    def raise_if_away(self) -> None:
        self.backend.first_page("", 1)

    def look(
        self,
        parsed: ParsedSearch,
        starts: Mapping[str, Position | None],
        *,
        limit: int,
        order: SearchOrder,
        seconds: float,
    ) -> dict[str, SliceResult]:
        deadline = monotonic() + seconds
        looks: dict[str, SliceResult] = {}
        for session_id, start in starts.items():
            looks[session_id] = self._look(parsed, session_id, start, limit=limit, order=order, deadline=deadline)
            if monotonic() > deadline and len(looks) < len(starts):
                raise StoreTooSlow("The store did not respond in time.")
        return looks

    def next_position(self, session_id: str, start: Position | None, *, order: SearchOrder) -> Position | None:
        return next((stored.position for stored in self._items(session_id, start, order, 1)), None)

    def beginnings(self, items: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """A query for each item."""
        found = {}
        for session_id, item_id in items:
            try:
                found[session_id, item_id] = self.backend.item(session_id, item_id).raw[:READ_CHARACTERS]
            except UnknownItem:
                continue
        return found

    def _look(
        self,
        parsed: ParsedSearch,
        session_id: str,
        start: Position | None,
        *,
        limit: int,
        order: SearchOrder,
        deadline: float,
    ) -> SliceResult:
        number, cut_count = 0, 0
        for number, stored in enumerate(self._items(session_id, start, order, limit), start=1):
            raw = self._text_to_search(session_id, stored)
            cut_count += len(raw) > READ_CHARACTERS
            if parsed.matches_stored(raw[:READ_CHARACTERS]):
                return SliceResult(Hit(stored.id, stored.position), None, number, cut_count)
            if number == limit:
                return SliceResult(None, stored.position, number, cut_count)
            if monotonic() > deadline:
                raise StoreTooSlow("The store did not respond in time.")
        return SliceResult(None, None, number, cut_count)

    def _items(self, session_id: str, start: Position | None, order: SearchOrder, limit: int) -> Iterator[StoredItem]:
        """Up to `limit` items beyond a place, in the order, a page at a time."""
        while limit > 0:
            size = min(limit, PAGE_ITEMS)
            if order == SearchOrder.NEWEST_FIRST:
                page = (
                    self.backend.page_before(session_id, start, size)
                    if start
                    else self.backend.last_page(session_id, size)
                )
                items, has_more = list(reversed(page.items)), page.has_earlier
            else:
                page = (
                    self.backend.page_after(session_id, start, size)
                    if start
                    else self.backend.first_page(session_id, size)
                )
                items, has_more = list(page.items), page.has_later
            yield from items
            if not has_more or not items:
                return
            start, limit = items[-1].position, limit - len(items)

    def _text_to_search(self, session_id: str, stored: StoredItem) -> str:
        """Text of an item: all of it, or more than is searched. Of a very long one the page may have less than that."""
        if stored.is_whole or len(stored.raw) > READ_CHARACTERS:
            return stored.raw
        try:
            return self.backend.item(session_id, stored.id).raw
        except UnknownItem:
            return ""  # Deleted meanwhile.
