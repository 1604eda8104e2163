"""What a search asks of a store: to look for words in its items and, where it has an index of words, to name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from sessions_app.items import Position

if TYPE_CHECKING:
    from sessions_app.models import SessionRecord
    from sessions_app.querysets import SessionRecordQuerySet
    from sessions_app.search.wording import Wording

READ_CHARACTERS = 131_072
"""How much of an item is searched, as memadmin_item_words does too; what comes later in it cannot be found."""


class Order(StrEnum):
    NEWEST_FIRST = "newest first"
    OLDEST_FIRST = "oldest first"


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that says what was searched for."""

    item_id: str
    position: Position


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at a slice of a session showed: an item that says so, or where to look on, or neither at its end."""

    hit: Hit | None
    looked_to: Position | None
    item_count: int


class ItemSearch(Protocol):
    """Looks for words in the items of a store by reading them. All methods raise StoreUnavailable.

    `stores.scan_search` does it for every kind of store; a kind that can look where its items are is quicker.
    """

    def raise_if_away(self) -> None:
        """Costs next to nothing: a search asks it of every store before it begins."""

    def look(
        self, wording: Wording, starts: Mapping[str, Position | None], *, limit: int, order: Order, seconds: float
    ) -> dict[str, Look]:
        """Reads up to `limit` items of each session, beyond where it starts, and stops at the first that says so.

        Raises StoreTooSlow when it takes longer than `seconds`; nothing is known then.
        """

    def next_position(self, session_id: str, start: Position | None, *, order: Order) -> Position | None:
        """Where the item stands that follows in the order, whatever it says, for passing over it."""

    def beginnings(self, items: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The first READ_CHARACTERS of items, by session id and item id, without those that are gone."""


class IndexState(StrEnum):
    ABSENT = "absent"
    BUILDING = "building"
    INVALID = "invalid"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class SearchIndex:
    state: IndexState
    schema: str = ""
    name: str = ""
    size_bytes: int = 0
    percent_built: int | None = None
    """Of the table, while building; None where the server does not tell."""

    @property
    def is_ready(self) -> bool:
        return self.state == IndexState.READY


class IndexNotPossible(Exception):
    """The index stays as it is; the message is a sentence for an operator."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """How many items an index would name for some words, about, of how many."""

    item_count: int
    of: int


class WordIndex(Protocol):
    """The full-text index that a store may have, if its owner chose so. All methods raise StoreUnavailable."""

    def state(self) -> SearchIndex: ...

    def create(self) -> float:
        """Builds it while agents go on writing, and returns the seconds it took. Raises IndexNotPossible.

        A half-built one is dropped and built again; of one that is ready only the statistics are renewed.
        """

    def drop(self) -> bool:
        """Whether there was one to drop. Raises IndexNotPossible."""

    def frequency(self, wording: Wording, *, seconds: float) -> Frequency | None:
        """From statistics, without reading items; None while there is no index that is ready. Raises StoreTooSlow."""

    def newest_that_say_so(
        self, wording: Wording, sessions: SessionRecordQuerySet, *, limit: int, seconds: float
    ) -> list[tuple[SessionRecord, str]]:
        """The newest of the store's own among `sessions` that say so, newest first, each with the id of its newest item
        that does. For rare words. Raises StoreTooSlow.
        """

    def next_that_says_so(
        self, wording: Wording, session_id: str, start: Position | None, *, order: Order, seconds: float
    ) -> Hit | None:
        """The next item of one session, beyond a place. For rare words. Raises StoreTooSlow."""
