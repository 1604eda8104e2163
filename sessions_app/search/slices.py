"""Reading sessions slice by slice, within a time limit: one item may take as long as a thousand others."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from django.conf import settings

from sessions_app.items import Position
from sessions_app.models import SessionStore
from sessions_app.search.snippets import is_shown
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionUnreadable, StoreTooSlow
from sessions_app.stores.sealed import SealedBackend, sealed_backend_for
from sessions_app.stores.search_protocol import READ_CHARACTERS, ItemSearch, SearchOrder, SliceResult

FIRST_SLICE_ITEMS = 50

MOST_SLICE_ITEMS = 10_000
"""Largest slice. In a store that is quicker still, larger ones would hardly save time."""

SLICE_SECONDS = 0.1
"""Slices and batches grow only while they take less than this, so that little is lost when one is cancelled."""

LEAST_SECONDS = 0.25
"""Minimum time of a read. A search may exceed settings.SEARCH_SCAN_SECONDS by as much."""


def deadline_from_now() -> float:
    return time.monotonic() + settings.SEARCH_SCAN_SECONDS


@dataclass
class SliceReader:
    """Reads for one search until its time is over. It makes progress by at least one read, so repeated searches end."""

    parsed: ParsedSearch
    order: SearchOrder
    is_masked: bool
    """True if it searches for a user who reads masked text: masked values do not match then."""
    deadline: float = field(default_factory=deadline_from_now)
    granted: Collection[tuple[int, str]] = ()
    """Encrypted sessions that may be read, by the id of their store and their own. No index has them."""
    slice_items: int = FIRST_SLICE_ITEMS
    items_read: int = 0
    items_passed_over: int = 0
    items_cut: int = 0
    """Number of read items whose text is longer than READ_CHARACTERS."""
    sessions_passed_over: int = 0
    has_got_on: bool = False
    """True if the next page of the search need not read all of it again."""
    _sealed: dict[int, SealedBackend] = field(default_factory=dict, init=False)

    @property
    def is_over(self) -> bool:
        return self.has_got_on and time.monotonic() >= self.deadline

    @property
    def note(self) -> str:
        """Sentences about items that could not be searched."""
        return " ".join(self._notes())

    def _notes(self) -> Iterator[str]:
        if self.items_passed_over == 1:
            yield "One item was skipped because searching it takes too long."
        elif self.items_passed_over:
            yield f"{self.items_passed_over:,} items were skipped because searching each takes too long."
        if self.items_cut:
            count = "One item is" if self.items_cut == 1 else f"{self.items_cut:,} items are"
            yield f"{count} too long to search completely: only the first {READ_CHARACTERS:,} characters were searched."
        if self.sessions_passed_over:
            which = "One session" if self.sessions_passed_over == 1 else f"{self.sessions_passed_over:,} sessions"
            yield f"{which} could not be read or searched."
        closed = sum(len(backend.kept_closed) for backend in self._sealed.values())
        if closed:
            count = "One encrypted item could" if closed == 1 else f"{closed:,} encrypted items could"
            yield f"{count} not be decrypted and was not searched."

    def search_of(self, store: SessionStore, session_id: str) -> ItemSearch:
        if (store.pk, session_id) not in self.granted:
            return backend_for(store).search
        if store.pk not in self._sealed:
            self._sealed[store.pk] = sealed_backend_for(store, opens=True)
        return self._sealed[store.pk].search

    def beginnings(self, store: SessionStore, items: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Texts of items by session id and item id, decrypted where permitted."""
        sealed = [item for item in items if (store.pk, item[0]) in self.granted]
        plain = [item for item in items if (store.pk, item[0]) not in self.granted]
        texts: dict[tuple[str, str], str] = {}
        for some in filter(None, (sealed, plain)):
            texts |= self.search_of(store, some[0][0]).beginnings(some)
        return texts

    def seconds_for_one(self) -> float:
        """Half of the time that is left: the other half is for a smaller read, should this one be cancelled."""
        return max((self.deadline - time.monotonic()) / 2, LEAST_SECONDS)

    def look(self, store: SessionStore, starts: Mapping[str, Position | None], *, limit: int) -> dict[str, SliceResult]:
        """Reads several sessions at once, without unreadable ones. Raises StoreTooSlow and StoreUnavailable."""
        try:
            return self._look(store, starts, limit=limit)
        except SessionUnreadable:
            if len(starts) == 1:
                self.sessions_passed_over += 1
                return dict.fromkeys(starts, SliceResult(None, None, 0))
        return {
            session_id: self.look(store, {session_id: start}, limit=limit)[session_id]
            for session_id, start in starts.items()
        }

    def _look(
        self, store: SessionStore, starts: Mapping[str, Position | None], *, limit: int
    ) -> dict[str, SliceResult]:
        looks: dict[str, SliceResult] = {}
        sealed = {session_id for session_id in starts if (store.pk, session_id) in self.granted}
        for some in filter(None, (sealed, starts.keys() - sealed)):
            search, seconds = self.search_of(store, next(iter(some))), self.seconds_for_one()
            wanted = {session_id: start for session_id, start in starts.items() if session_id in some}
            looks |= search.look(self.parsed, wanted, limit=limit, order=self.order, seconds=seconds)
        if not self.is_masked:
            return looks
        hits = {(session_id, look.hit.item_id): look for session_id, look in looks.items() if look.hit}
        texts = self.beginnings(store, list(hits))
        for (session_id, item_id), look in hits.items():
            if look.hit and not is_shown(texts.get((session_id, item_id), ""), self.parsed):
                looks[session_id] = replace(look, hit=None, looked_to=look.hit.position)
        return looks

    def next_slice(self, store: SessionStore, session_id: str, start: Position | None) -> SliceResult | None:
        """Result for a session beyond a place, or None when the time was over before. Raises StoreUnavailable.

        If a slice takes too long, its first item is read alone; an item that takes too long alone, though nothing was
        read before it, is skipped.
        """
        while not self.is_over:
            started = time.monotonic()
            try:
                look = self.look(store, {session_id: start}, limit=self.slice_items)[session_id]
            except StoreTooSlow:
                if self.slice_items > 1:
                    self.slice_items = 1
                    continue
                if self.has_got_on:
                    return None
                passed = self.search_of(store, session_id).next_position(session_id, start, order=self.order)
                look = SliceResult(None, passed, 0)
                self.items_passed_over += 1
            self.has_got_on = True
            self.add(look)
            self.fit_slices(look.item_count, time.monotonic() - started)
            return look
        return None

    def add(self, look: SliceResult) -> None:
        """Counts the items of a result as read."""
        self.items_read += look.item_count
        self.items_cut += look.cut_count

    def fit_slices(self, item_count: int, seconds: float) -> None:
        """Chooses the size of the next slice by the items and the time of this one.

        Only a full slice shows that a larger one is quick, too: the end of a session is reached quickly anyway.
        """
        if seconds < SLICE_SECONDS:
            if item_count >= self.slice_items:
                self.slice_items = min(2 * self.slice_items, MOST_SLICE_ITEMS)
        elif seconds > 2 * SLICE_SECONDS:
            self.slice_items = max(self.slice_items // 2, 1)
