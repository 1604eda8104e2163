"""Table adapter: how one kind of table of agno or phidata keeps sessions. A kind brings it for `DocumentBackend`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import ClassVar, NamedTuple

from memadmin.json_spans import Part
from sessions_app.stores.base import FoundSession
from sessions_app.stores.documents.database import DatabaseSession, DocumentRow

Order = tuple[int | str, ...]


class Document(NamedTuple):
    """One stored document of a session."""

    key: str
    """Identifier within the session, safe in a URL."""
    order: Order
    """Sort key among the documents of the session; equally long for all documents of an adapter."""
    table: str
    column: str
    name: str
    """The library's own identifier of the row."""


class DocumentText(NamedTuple):
    """Stored text of a document."""

    text: str
    written_at: datetime | None


@dataclass(frozen=True, slots=True)
class Fragment:
    """An item in the text of a document."""

    number: int
    part: Part
    written_at: datetime | None
    is_message: bool
    """True for a message that is not a copy of another one; false for other content kept beside the messages."""


@dataclass(frozen=True, slots=True)
class Head:
    """Item count and first messages of a session, for a list."""

    item_count: int
    heads: Sequence[str]


def key_of(name: str) -> str:
    """A name given by the library, made safe for a URL."""
    is_plain = name.isascii() and name.replace("-", "").replace("_", "").isalnum() and len(name) <= 64
    return name if is_plain else blake2b(name.encode(errors="surrogatepass"), digest_size=12).hexdigest()


def sort_number(value: object, otherwise: int) -> int:
    """A number of a column, in which SQLite stores anything."""
    try:
        return int(str(value))
    except ValueError:
        return otherwise


def mark_of(*facts: object) -> str:
    return blake2b(repr(facts).encode(errors="surrogatepass"), digest_size=16).hexdigest()


class TableAdapter(ABC):
    """Reads and changes one kind of table. All methods run within one transaction, for reading or writing."""

    has: ClassVar[frozenset[str]]
    """The columns that identify the table."""
    has_not: ClassVar[frozenset[str]] = frozenset()
    holds_memories: ClassVar[bool] = False
    """True if the table has users' memories instead of conversations."""

    def fits(self, columns: Collection[str]) -> bool:
        return self.has <= set(columns) and not self.has_not & set(columns)

    def is_surely(self, columns: Collection[str]) -> bool:
        """Whether a table found by a scan is certainly one of these."""
        return self.fits(columns)

    # --- read ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def session_ids(self, db: DatabaseSession, after: str | None, limit: int) -> list[str]:
        """In the database's order of them."""

    @abstractmethod
    def found(self, db: DatabaseSession, session_ids: Sequence[str]) -> list[FoundSession]: ...

    @abstractmethod
    def heads(self, db: DatabaseSession, session_ids: Sequence[str]) -> Mapping[str, Head]:
        """Heads of the sessions that exist."""

    @abstractmethod
    def documents(self, db: DatabaseSession, session_id: str) -> list[Document]:
        """In order, without their texts."""

    @abstractmethod
    def texts(self, db: DatabaseSession, session_id: str, documents: Sequence[Document]) -> Mapping[str, DocumentText]:
        """Texts of some documents, by key; deleted and empty documents are left out."""

    @abstractmethod
    def fragments(self, document: Document, text: DocumentText) -> Iterator[Fragment]:
        """In the order of their numbers. Never raises: an unreadable document is one fragment."""

    def items_about(self, db: DatabaseSession) -> int | None:
        """Approximate number of items; None if unknown."""
        return None

    # --- changed ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def lock(self, db: DatabaseSession, session_id: str) -> Sequence[tuple[DocumentRow, Sequence[Document]]]:
        """All rows with documents of the session, each with its documents, locked in the library's order."""

    @abstractmethod
    def beside(self, db: DatabaseSession, session_id: str) -> list[DocumentRow]:
        """Rows of other tables that may repeat text of the session, locked."""

    @abstractmethod
    def shortened(self, document: Document, text: str, gone: Sequence[Fragment]) -> str | None:
        """Text of a document without some of its fragments; None if its row has to go."""

    @abstractmethod
    def erase(self, db: DatabaseSession, session_id: str) -> None:
        """Deletes all of the session, and its content in neighbouring tables."""
