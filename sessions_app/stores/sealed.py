"""Read access to encrypted items: checks their envelopes and, where permitted, decrypts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memadmin.counting import COUNT_CAP
from sessions_app.encryption import Sealing, SessionSeals, sealing_of
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.base import Branch, Readable, SessionPreview
from sessions_app.stores.kinds import on_branch
from sessions_app.stores.scan_search import ScanSearch

if TYPE_CHECKING:
    from sessions_app.models import SessionStore

PROOF_ITEMS = 20
"""Number of items at each end of a session that are tried, to tell a wrong key from a damaged envelope."""


def sealed_backend_for(store: SessionStore, *, opens: bool, branch: Branch | None = None) -> SealedBackend:
    """`opens`: decrypt, for readers who may read the session's encrypted items; `branch`: only one branch of it."""
    return SealedBackend(on_branch(store, branch), sealing_of(store), opens=opens)


class SealedBackend:
    """Implements `Readable` on a backend: items come with their seals, and decrypted on demand.

    Only requested items are decrypted. Previews never are.
    """

    def __init__(self, backend: Readable, sealing: Sealing, *, opens: bool) -> None:
        self.backend, self.sealing, self.opens = backend, sealing, opens
        self.kept_closed: set[tuple[str, str]] = set()
        """Items that could not be decrypted although requested, by session and item."""
        self._seals: dict[str, SessionSeals] = {}

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        return self.backend.previews(session_ids)

    def first_page(self, session_id: str, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.first_page(session_id, limit))

    def last_page(self, session_id: str, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.last_page(session_id, limit))

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.page_after(session_id, position, limit))

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.page_before(session_id, position, limit))

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.page_at(session_id, position, limit))

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.page_around(session_id, item_id, limit))

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        return self._page(session_id, self.backend.page_from(session_id, instant, limit))

    def item(self, session_id: str, item_id: str) -> StoredItem:
        return self._examined(session_id, [self.backend.item(session_id, item_id)])[0]

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        for stored in self.backend.every_item(session_id):
            yield from self._examined(session_id, [stored])

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return self.backend.count(session_id, cap)

    @property
    def search(self) -> ScanSearch:
        return ScanSearch(self)

    @property
    def word_index(self) -> None:
        return None

    def _page(self, session_id: str, page: ItemPage) -> ItemPage:
        return replace(page, items=self._examined(session_id, page.items))

    def _examined(self, session_id: str, items: Sequence[StoredItem]) -> list[StoredItem]:
        if session_id not in self._seals:
            self._seals[session_id] = self.sealing.of_session(session_id)
        seals = self._seals[session_id]
        examined = seals.examined(
            items,
            at=datetime.now(UTC),
            opens=self.opens,
            is_key_proven=lambda: self._opens_anything(session_id, seals),
        )
        if self.opens:
            self.kept_closed |= {(session_id, item.id) for item in examined if item.seal and not item.seal.is_open}
        return examined

    def _opens_anything(self, session_id: str, seals: SessionSeals) -> bool:
        ends = (self.backend.first_page(session_id, PROOF_ITEMS), self.backend.last_page(session_id, PROOF_ITEMS))
        return any(seals.proves_key(page.items) for page in ends)
