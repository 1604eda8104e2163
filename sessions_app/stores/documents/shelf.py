"""How one kind of table of agno or phidata keeps sessions: what a kind brings for `DocumentBackend`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import ClassVar, NamedTuple

from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.database import Desk, Row
from sessions_app.stores.documents.json_text import Part

Order = tuple[int | str, ...]


class Chapter(NamedTuple):
    """One stored document of a session."""

    key: str
    """Names it within the session, in letters that an address can have."""
    order: Order
    """Its place among the others; of all chapters of a shelf equally long."""
    table: str
    column: str
    name: str
    """What the library knows its row by."""


class Told(NamedTuple):
    """What a chapter says."""

    text: str
    written_at: datetime | None


@dataclass(frozen=True, slots=True)
class Piece:
    """An item in the text of a chapter."""

    number: int
    part: Part
    written_at: datetime | None
    is_said: bool
    """Whether it is a message, which is no copy of another one, or something that is kept beside the messages."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a list shows of a session."""

    item_count: int
    heads: Sequence[str]


def key_of(name: str) -> str:
    """A name that the library gave, in letters that an address can have."""
    is_plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 64
    return name if is_plain else blake2b(name.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def mark_of(*facts: object) -> str:
    return blake2b(repr(facts).encode(), digest_size=16).hexdigest()


class Shelf(ABC):
    """All methods ask a desk, within one moment or one change of the database."""

    has: ClassVar[frozenset[str]]
    """The columns that tell the table."""
    has_not: ClassVar[frozenset[str]] = frozenset()
    holds_memories: ClassVar[bool] = False
    """Of users, and not what was said."""

    def fits(self, columns: Collection[str]) -> bool:
        return self.has <= set(columns) and not self.has_not & set(columns)

    def is_surely(self, columns: Collection[str]) -> bool:
        """Whether a table that nobody named is one of these."""
        return self.fits(columns)

    # --- read ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def session_ids(self, desk: Desk, after: str | None, limit: int) -> list[str]:
        """In the database's order of them."""

    @abstractmethod
    def found(self, desk: Desk, session_ids: Sequence[str]) -> list[FoundSession]: ...

    @abstractmethod
    def beginnings(self, desk: Desk, session_ids: Sequence[str]) -> Mapping[str, Beginning]:
        """Of those that are there."""

    @abstractmethod
    def chapters(self, desk: Desk, session_id: str) -> list[Chapter]:
        """In order, without what they say."""

    @abstractmethod
    def told(self, desk: Desk, session_id: str, chapters: Sequence[Chapter]) -> Mapping[str, Told]:
        """What some chapters say, by their keys; one that is gone meanwhile or empty is left out."""

    @abstractmethod
    def pieces(self, chapter: Chapter, told: Told) -> Iterator[Piece]:
        """In the order of their numbers. Never raises: what cannot be read is one piece."""

    def items_about(self, desk: Desk) -> int | None:
        """About how many there are; None where nobody knows."""
        return None

    # --- changed ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def lock(self, desk: Desk, session_id: str) -> Sequence[tuple[Row, Sequence[Chapter]]]:
        """All rows that have chapters of the session, each with them, locked in the library's order."""

    @abstractmethod
    def beside(self, desk: Desk, session_id: str) -> list[Row]:
        """Rows that may repeat what the session says, locked."""

    @abstractmethod
    def shortened(self, chapter: Chapter, text: str, gone: Sequence[Piece]) -> str | None:
        """What a chapter is without some of its pieces; None: its row goes."""

    @abstractmethod
    def erase(self, desk: Desk, session_id: str) -> None:
        """Deletes all of the session, and what its neighbours have of it."""
