"""Reader of stores for pages: values in all items are masked.

Views read stores through this module alone, which `lint-imports` enforces. Unmasked text comes from one module,
`services.revealing`, which records the reveal first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import Branch, Capability, Readable, StoreUnavailable
from sessions_app.stores.circuit_breaker import asking
from sessions_app.stores.sealed import sealed_backend_for


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
        return self._page(self.backend.first_page, session_id, limit)

    def last_page(self, session_id: str, limit: int) -> ItemPage:
        return self._page(self.backend.last_page, session_id, limit)

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(self.backend.page_after, session_id, position, limit)

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(self.backend.page_before, session_id, position, limit)

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(self.backend.page_at, session_id, position, limit)

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        """Page around an item. Raises UnknownItem."""
        return self._page(self.backend.page_around, session_id, item_id, limit)

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        return self._page(self.backend.page_from, session_id, instant, limit)

    def item(self, session_id: str, item_id: str, *, as_file: bool = False) -> StoredItem:
        """One item, for its own page or for a file. Raises UnknownItem."""
        with asking(self.store):
            stored = self.backend.item(session_id, item_id)
        return Masker.of_one_item(as_file=as_file).file_item(stored)

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """All items, for files. A download also waits for a store that recently timed out."""
        for stored in self.backend.every_item(session_id):
            yield Masker.of_one_item(as_file=True).file_item(stored)

    def count(self, session_id: str) -> int:
        with asking(self.store):
            return self.backend.count(session_id)

    def _page(self, ask: Callable[..., ItemPage], *question: object) -> ItemPage:
        with asking(self.store):
            page = ask(*question)
        return replace(page, items=[self.masker.item(stored) for stored in page.items])
