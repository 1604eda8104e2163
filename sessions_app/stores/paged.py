"""Common base class of stores: all pages of a session from one method, erasure in steps, and defaults."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.postgres.aggregates import ArrayAgg
from django.db import transaction
from django.db.models.functions import Now

from memadmin.batching import batched
from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.models import SessionRecord
from sessions_app.stores.base import (
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    UNCAPPED,
    WHOLE_ITEM_BYTES,
    Capability,
    Deleted,
    FoundSession,
    Place,
    SessionBusy,
    SessionPage,
    SessionPreview,
    SessionUnreadable,
    StoreHealth,
    StoreTooSlow,
    StoreUnavailable,
    UnknownItem,
    UnsupportedOperation,
)
from sessions_app.stores.scan_search import ScanSearch
from sessions_app.stores.search_protocol import ItemSearch, WordIndex

if TYPE_CHECKING:
    from django.db.models import Q, QuerySet

    from sessions_app.models import SessionStore

logger = logging.getLogger(__name__)

STEPS_IN_VAIN = 20
"""Number of steps without a deleted item after which `erase_session` gives up."""

BATCH_ITEMS = 100
"""Number of items that `every_item` reads at once; with WHOLE_ITEM_BYTES it bounds the memory of a download."""


COUNTED_AT_ONCE = 10_000
"""Number of sessions whose items `with_items` counts at once."""


OF_ROWS: Mapping[str, type[StoreUnavailable]] = {
    **dict.fromkeys(("enumerate_sessions", "look_up", "previews", "count_each"), StoreUnavailable),
    **dict.fromkeys(
        ("window", "position_of", "position_from", "item", "count", "delete_some", "delete_items", "replace_item"),
        SessionUnreadable,
    ),
}
"""Methods that read rows of agents, and what they raise if a kind meets a value that it did not expect."""


def with_odd_rows(method: Callable[..., Any], raises: type[StoreUnavailable]) -> Callable[..., Any]:
    """The method of a backend, so that a value in a row, whatever it is, stops only what depends on it."""

    @wraps(method)
    def reading(self: PagedBackend, *arguments: Any, **named: Any) -> Any:
        try:
            return method(self, *arguments, **named)
        except (ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError) as problem:
            logger.exception("store %s has a row that cannot be read", self.store.pk)
            what = "This session" if raises is SessionUnreadable else f"The store {self.store}"
            raise raises(
                f"{what} has a value that cannot be read ({type(problem).__name__}); the log has the details."
            ) from problem

    return reading


class PagedBackend(ABC):
    """Implements most of `Backend`; a kind brings `window`, `position_of`, `item`, `count`, `previews` and `health`."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset()

    erased_at_once: ClassVar[int] = 5_000
    """Number of items that one step of `erase_session` deletes."""

    erase_seconds: ClassVar[float] = float("inf")
    """Time after which `erase_session` begins no further step."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, raises in OF_ROWS.items():
            if method := vars(cls).get(name):
                setattr(cls, name, with_odd_rows(method, raises))

    @abstractmethod
    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        """Up to `earlier` items before a position and `later` items from it on, and whether there are more.

        Without a position the earlier ones are counted from the end, the later ones from the start; only one of the
        two is above 0 then. Of an item longer than WHOLE_ITEM_BYTES it has only both ends (`both_ends`).
        """

    @abstractmethod
    def position_of(self, session_id: str, item_id: str) -> Position:
        """Position of an item. Raises UnknownItem, also for a malformed id."""

    @abstractmethod
    def item(self, session_id: str, item_id: str) -> StoredItem:
        """One item, whole, however large. Raises UnknownItem."""

    @abstractmethod
    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        """Number of items, at most cap + 1."""

    @abstractmethod
    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """One entry for each id; `previews.preview_from` makes it from the beginnings of the first items."""

    @abstractmethod
    def health(self, *, thorough: bool = False) -> StoreHealth:
        """Never raises."""

    def position_from(self, session_id: str, instant: datetime) -> Position | None:
        """Position of the first item written at an instant or later; None if there is none, or it is unknown."""
        return None

    def first_page(self, session_id: str, limit: int) -> ItemPage:
        return self.window(session_id, None, earlier=0, later=limit)

    def last_page(self, session_id: str, limit: int) -> ItemPage:
        return self.window(session_id, None, earlier=limit, later=0)

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self.page_at(session_id, position.next(), limit)

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self.window(session_id, position, earlier=limit, later=0)

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        return self.window(session_id, position, earlier=0, later=limit)

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        place = self.position_of(session_id, item_id)
        return self.window(session_id, place, earlier=limit // 2, later=limit - limit // 2)

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        place = self.position_from(session_id, instant)
        page = self.page_at(session_id, place, limit) if place else None
        return page if page and page.items else self.last_page(session_id, limit)

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        page = self.first_page(session_id, BATCH_ITEMS)
        while page.items:
            for stored in page.items:
                try:
                    yield stored if stored.is_whole else self.item(session_id, stored.id)
                except UnknownItem:
                    continue  # The agent took it back between the two queries.
            if not page.has_later:
                return
            page = self.page_after(session_id, page.items[-1].position, BATCH_ITEMS)

    @property
    def search(self) -> ItemSearch:
        return ScanSearch(self)

    @property
    def word_index(self) -> WordIndex | None:
        return None

    def system(self) -> str:
        return ""

    def places(self) -> AbstractSet[Place]:
        return frozenset()

    def fingerprint(self) -> str:
        return ""

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        raise UnsupportedOperation(Capability.ENUMERATE.lack)

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        previews = self.previews(session_ids)
        return {each: FoundSession(each) for each in session_ids if previews[each].item_count is not None}

    def count_each(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        return {session_id: self.count(session_id, cap=UNCAPPED) for session_id in session_ids}

    def with_items(self, records: QuerySet[SessionRecord], condition: Q, **aggregates: Any) -> dict[str, Any]:
        found = records.aggregate(items=ArrayAgg("session_id", filter=condition), **aggregates)
        batches = batched(found["items"] or [], COUNTED_AT_ONCE)
        return {**found, "items": sum(sum(self.count_each(batch).values()) for batch in batches)}

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        raise UnsupportedOperation(Capability.ERASE_SESSIONS.lack)

    def delete_whole(
        self, session_ids: Sequence[str], *, at_most: int, close: Callable[[Sequence[str]], object] | None = None
    ) -> Mapping[str, int]:
        return {}

    def show_rest(self, session_id: str) -> None:  # noqa: B027  most hide nothing
        """Nothing is hidden."""

    def erase_session(self, session_id: str) -> int:
        give_up_at, count, in_vain = monotonic() + self.erase_seconds, 0, 0
        while True:
            step = self.delete_some(session_id, at_most=self.erased_at_once)
            count += step.count
            if not step.left:
                return count
            in_vain += not step.count
            if in_vain == STEPS_IN_VAIN:
                raise SessionBusy(
                    f"{count:,} items were deleted, but an agent is still writing to the session. Try again."
                )
            if monotonic() > give_up_at:
                raise StoreTooSlow(f"{count:,} items were deleted, but not all: do the same again to continue.")

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        raise UnsupportedOperation(Capability.REPLACE_ITEMS.lack)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        raise UnsupportedOperation(Capability.ERASE_ITEMS.lack)


def page_of_list(texts: Sequence[str], pivot: Position | None, *, earlier: int, later: int, first: int = 0) -> ItemPage:
    """`window` for a store that keeps a session as one list: ids and positions are indexes in it, from 0.

    `first` is the index of the first text if only a part of the list was read; that part then extends one item beyond
    the page on either side.
    """
    end = first + len(texts)
    place = min(max(int(pivot.key[-1]), first), end) if pivot else (end if earlier else first)
    start, stop = max(place - earlier, first), min(place + later, end)
    items = [listed_item(number, texts[number - first]) for number in range(start, stop)]
    return ItemPage(items, has_earlier=start > first, has_later=stop < end)


def listed_item(number: int, text: str) -> StoredItem:
    """An item at an index of a list, as a page shows it."""
    raw, tail = both_ends(text)
    byte_count = len(text.encode(errors="surrogatepass"))
    return StoredItem(str(number), Position((number,)), raw, byte_count, None, raw_tail=tail)


def both_ends(text: str) -> tuple[str, str]:
    """Beginning and end of a stored text as a page shows them; the whole text and an empty end if it is short."""
    if len(text) <= WHOLE_ITEM_BYTES and len(text.encode(errors="surrogatepass")) <= WHOLE_ITEM_BYTES:
        return text, ""
    return text[:ITEM_HEAD_BYTES], text[-ITEM_TAIL_BYTES:]


def whole_number(item_id: str) -> int:
    """Number in the id of an item, in one spelling only. Raises UnknownItem."""
    try:
        number = int(item_id)
    except ValueError:
        raise UnknownItem(item_id) from None
    if str(number) != item_id or not -(2**63) <= number < 2**63:
        raise UnknownItem(item_id)
    return number


def mark_erased(store: SessionStore, session_ids: Sequence[str]) -> None:
    """Marks sessions as erased in the registry, with a new row for each that has none. An earlier mark keeps its time,
    and a session that is forgotten has one under its digest.
    """
    present = SessionRecord.objects.filter(store=store, session_id__in=session_ids, erased_at=None)
    if present.update(erased_at=Now()) == len(session_ids):
        return
    if unknown := set(session_ids) - SessionRecord.objects.forgotten(store, session_ids):
        rows = [SessionRecord(store=store, session_id=each) for each in sorted(unknown)]
        SessionRecord.objects.bulk_create(rows, ignore_conflicts=True)
        present.update(erased_at=Now())


@contextmanager
def erasing(store: SessionStore, session_id: str) -> Iterator[None]:
    """Transaction around one step of an erasure: marks the session first, so that discovery does not register its
    remaining items as a new session. If the store fails, the mark of this step is rolled back."""
    with transaction.atomic():
        mark_erased(store, [session_id])
        yield
