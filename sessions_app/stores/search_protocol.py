"""Protocol of search in a store: a scan of its items and, if it has one, a full-text index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from sessions_app.items import Position

if TYPE_CHECKING:
    from sessions_app.models import SessionRecord
    from sessions_app.models.querysets import SessionRecordQuerySet
    from sessions_app.search_syntax import ParsedSearch

READ_CHARACTERS = 131_072
"""Number of searched characters of an item, equal to memadmin_item_words; later text cannot be found."""


class SearchOrder(StrEnum):
    NEWEST_FIRST = "newest first"
    OLDEST_FIRST = "oldest first"


@dataclass(frozen=True, slots=True)
class Hit:
    """A matching item."""

    item_id: str
    position: Position


@dataclass(frozen=True, slots=True)
class SliceResult:
    """Result of searching a slice of a session: a hit, or the position to continue from, or neither at the end."""

    hit: Hit | None
    looked_to: Position | None
    item_count: int
    """Number of items that were read."""
    cut_count: int = 0
    """Number of these that are longer than READ_CHARACTERS, so only their beginning was searched."""


class ItemSearch(Protocol):
    """Search for words by reading the items of a store. All methods raise StoreUnavailable.

    `stores.scan_search` works for every kind of store; a kind that can search inside its system is faster.
    """

    def raise_if_away(self) -> None:
        """Raises StoreUnavailable if the store is not responding. Cheap: a search calls it for every store before it
        begins.
        """

    def look(
        self,
        parsed: ParsedSearch,
        starts: Mapping[str, Position | None],
        *,
        limit: int,
        order: SearchOrder,
        seconds: float,
    ) -> dict[str, SliceResult]:
        """Reads up to `limit` items of each session, beyond its start position, and stops at the first match.

        Raises StoreTooSlow after `seconds`, without a result.
        """

    def next_position(self, session_id: str, start: Position | None, *, order: SearchOrder) -> Position | None:
        """Position of the next item in the order, matching or not, for skipping it."""

    def beginnings(self, items: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """The first READ_CHARACTERS of items, by session id and item id, without deleted items."""


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
    """Progress through the table, while building; None if unknown."""
    is_possible: bool = True
    """False where none can be built, as on a partitioned table."""
    item_count: int = 0
    """Estimated number of items of the store."""

    @property
    def is_missing(self) -> bool:
        """Whether one could be built and is not."""
        return self.is_possible and self.state in (IndexState.ABSENT, IndexState.INVALID)

    @property
    def is_ready(self) -> bool:
        return self.state == IndexState.READY


class IndexNotPossible(Exception):
    """The index stays as it is; the message is a sentence for an operator."""


@dataclass(frozen=True, slots=True)
class Frequency:
    """Estimated number of items that an index would return for some words, and of all items."""

    item_count: int
    of: int


class WordIndex(Protocol):
    """Optional full-text index of a store. All methods raise StoreUnavailable."""

    def state(self) -> SearchIndex: ...

    def create(self) -> float:
        """Builds it while agents go on writing, and returns the seconds it took. Raises IndexNotPossible.

        A half-built one is dropped and built again; of one that is ready only the statistics are renewed.
        """

    def drop(self) -> bool:
        """Drops the index; returns whether there was one. Raises IndexNotPossible."""

    def frequency(self, parsed: ParsedSearch, *, seconds: float) -> Frequency | None:
        """From statistics, without reading items; None while there is no index that is ready. Raises StoreTooSlow."""

    def newest_matches(
        self, parsed: ParsedSearch, sessions: SessionRecordQuerySet, *, limit: int, seconds: float
    ) -> list[tuple[SessionRecord, str]]:
        """Matching sessions of the store among `sessions`, newest first, each with the id of its newest matching item.

        For rare words. Raises StoreTooSlow.
        """

    def next_match(
        self, parsed: ParsedSearch, session_id: str, start: Position | None, *, order: SearchOrder, seconds: float
    ) -> Hit | None:
        """The next item of one session, beyond a place. For rare words. Raises StoreTooSlow."""
