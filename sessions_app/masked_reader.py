"""Reader of stores for pages: values in all items are masked.

Views read stores through this module alone, which `lint-imports` enforces. Unmasked text comes from one module,
`services.revealing`, which records the reveal first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.masking import ItemView, Masker
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import Branch, Capability, Readable, StoreUnavailable
from sessions_app.stores.circuit_breaker import asking
from sessions_app.stores.sealed import sealed_backend_for
from sessions_app.whole_runs import around_item, begins_with_run, ends_with_run, with_beginning


def reader_for(store: SessionStore, *, opens: bool = False, branch: Branch | None = None) -> Reader:
    """Reader of a store for one page or file; with `branch` of one branch of a session.

    `opens` if the user may read encrypted items of the session (`access.may_open`): its items are decrypted with the
    loaded keys, and masked like any others.
    """
    return Reader(store, sealed_backend_for(store, opens=opens, branch=branch), opens=opens)


def expires_at(record: SessionRecord) -> datetime | None:
    """Time at which its store deletes a session by itself; None if it stays, or if the time is unknown. No request to a
    store without expiry.
    """
    backend = backend_for(record.store)
    if Capability.SELF_EXPIRY not in backend.capabilities:
        return None
    try:
        with asking(record.store):
            return backend.previews([record.session_id])[record.session_id].expires_at
    except StoreUnavailable:
        return None


@dataclass(frozen=True)
class Reader:
    """A `Readable` with masked items. Masking for one page has a limit: `masking.PAGE_STEPS`."""

    store: SessionStore
    backend: Readable
    masker: Masker = field(default_factory=Masker)
    opens: bool = False

    def first_page(self, session_id: str, limit: int) -> ItemPage:
        """The first runs, about `limit` items. This and the following pages cut no run but a very long one."""
        return self._to_run_end(self.backend.first_page, session_id, limit=limit)

    def last_page(self, session_id: str, limit: int) -> ItemPage:
        return self._from_run_start(self.backend.last_page, session_id, limit=limit)

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._to_run_end(self.backend.page_after, session_id, position, limit=limit)

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        """The page that begins with the item at a position, or with the next item if that one is gone."""
        return self._to_run_end(self.backend.page_at, session_id, position, limit=limit)

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._from_run_start(self.backend.page_before, session_id, position, limit=limit)

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        """The runs around an item. Raises UnknownItem."""
        with asking(self.store):
            page = self.backend.page_around(session_id, item_id, limit + 2)
            page = around_item(self.backend, session_id, page, item_id, limit)
        return self._masked(page)

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        """The runs from the first item written at an instant or later; the last runs if there is no such item."""
        with asking(self.store):
            page = self.backend.page_from(session_id, instant, limit + 1)
            if any(item.written_at and item.written_at >= instant for item in page.items):
                page = ends_with_run(self.backend, session_id, page, limit)
                page = with_beginning(self.backend, session_id, page)
            else:
                page = begins_with_run(self.backend, session_id, page, limit)
        return self._masked(page)

    def near(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        """The items from an instant on, wherever runs begin and end; the last ones if none is that new."""
        with asking(self.store):
            page = self.backend.page_from(session_id, instant, limit)
        return self._masked(page)

    def beside(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        """The items around one of them, which is whole, wherever runs begin and end. Raises UnknownItem."""
        with asking(self.store):
            page = self.backend.page_around(session_id, item_id, limit)
        return self._masked(page, whole=item_id)

    def end_of(self, session_id: str) -> Position | None:
        """Position of the newest item; None if there is none."""
        with asking(self.store):
            items = self.backend.last_page(session_id, 1).items
        return items[-1].position if items else None

    def behind(self, session_id: str, position: Position, cap: int) -> list[str]:
        """Ids of the items behind a position, at most `cap` + 1, oldest first."""
        with asking(self.store):
            return [item.id for item in self.backend.page_after(session_id, position, cap + 1).items]

    def item(self, session_id: str, item_id: str) -> StoredItem:
        """One whole item, for a file. Raises UnknownItem."""
        with asking(self.store):
            stored = self.backend.item(session_id, item_id)
        return Masker.of_one_item(as_file=True).file_item(stored)

    def item_view(self, session_id: str, item_id: str, first_part: int = 0) -> ItemView:
        """One item for its own page, from one of its parts on. Raises UnknownItem."""
        with asking(self.store):
            stored = self.backend.item(session_id, item_id)
        return ItemView.masked(stored, first_part)

    def require_item(self, session_id: str, item_id: str) -> None:
        """Raises UnknownItem if there is no such item."""
        with asking(self.store):
            self.backend.item(session_id, item_id)

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """All items, for files. A download also waits for a store that recently timed out."""
        for stored in self.backend.every_item(session_id):
            yield Masker.of_one_item(as_file=True).file_item(stored)

    def count(self, session_id: str) -> int:
        with asking(self.store):
            return self.backend.count(session_id)

    def _to_run_end(self, ask: Callable[..., ItemPage], session_id: str, *place: Position, limit: int) -> ItemPage:
        with asking(self.store):
            page = ask(session_id, *place, limit + 1)
            page = ends_with_run(self.backend, session_id, page, limit)
        return self._masked(page)

    def _from_run_start(self, ask: Callable[..., ItemPage], session_id: str, *place: Position, limit: int) -> ItemPage:
        with asking(self.store):
            page = ask(session_id, *place, limit + 1)
            page = begins_with_run(self.backend, session_id, page, limit)
        return self._masked(page)

    def _masked(self, page: ItemPage, *, whole: str = "") -> ItemPage:
        """Only what the page shows counts against the limit of masking: parts of items, except of the one `whole`."""
        mask, mask_whole = self.masker.shown_item, self.masker.item
        return replace(page, items=[(mask_whole if item.id == whole else mask)(item) for item in page.items])
