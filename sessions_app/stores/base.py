"""What every kind of store can be asked, and what it answers.

All methods are synchronous, open no transaction of their own unless they say so, and raise `StoreUnavailable` when the
store does not answer in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.searching import ItemSearch, WordIndex

PREVIEW_CHARACTERS = 160
"""How much of the first user text a list shows."""

READ_AHEAD = 64
"""How much more a preview reads: where it is cut, half of a number would stand that nobody knows for one."""

WHOLE_ITEM_BYTES = 256 * 1024
"""An item up to this size is read whole on a page of the timeline; of a longer one only both ends are."""

ITEM_HEAD_BYTES = 32 * 1024
ITEM_TAIL_BYTES = 4 * 1024


class StoreUnavailable(Exception):
    """The store did not answer, or its tables are not there; the message is a sentence for an operator."""


class SessionBusy(StoreUnavailable):
    """The agents hold the session's rows; the caller rolls back and may try again."""


class StoreLocked(StoreUnavailable):
    """Somebody holds a lock on a whole table of the store, which readers wait for, too."""

    def __init__(self) -> None:
        super().__init__(
            "Another transaction has locked the agents' tables, perhaps to change their columns. Try again when it is"
            " over."
        )


class StoreTooSlow(StoreUnavailable):
    """A statement took longer than it may, and was cancelled."""


class UnknownItem(Exception):
    """No item with this id in this session."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a list shows of one session. `item_count` is capped at COUNT_CAP + 1; None: the session is not there."""

    item_count: int | None
    first_user_text: str = ""
    """On one line, as stored, and up to READ_AHEAD longer than what is to be shown of it."""
    is_encrypted: bool = False


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a store: a stable word for scripts, a sentence for people."""

    code: str
    sentence: str
    is_fatal: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    problems: Sequence[Problem] = field(default_factory=tuple)
    sessions: int | None = None
    """About how many, from statistics; None when unknown."""
    items: int | None = None
    fence: str = "unsupported"
    """on, off or unsupported."""
    answered_in_ms: float | None = None
    hints: Sequence[str] = ()
    """Sentences about what nobody has said yet, and what is not done as long as that is so."""

    @property
    def state(self) -> str:
        """ok, degraded or down."""
        if any(problem.is_fatal for problem in self.problems):
            return "down"
        return "degraded" if self.problems else "ok"


class Backend(Protocol):
    """One connected store, ready to be asked."""

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, Preview]:
        """One entry for each id asked. One query however many ids, and its cost does not grow with long sessions."""

    def first_page(self, session_id: str, limit: int) -> ItemPage: ...

    def last_page(self, session_id: str, limit: int) -> ItemPage: ...

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage: ...

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage: ...

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        """The page that begins with the item at a position, or with the next one when it is gone."""

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        """The page with this item in its middle. Raises UnknownItem."""

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        """The page that begins with the first item written at or after an instant; the last page when there is none."""

    def item(self, session_id: str, item_id: str) -> StoredItem:
        """One item, whole, however large. Raises UnknownItem."""

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """All items, whole, oldest first, read in batches: for exports and inspection."""

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        """Number of items, at most cap + 1."""

    def erase_session(self, session_id: str) -> int:
        """Erases the session for good and marks its registry row, in the transaction of the caller.

        Locks in the order in which the SDK locks. Returns the number of items that went.
        """

    @property
    def search(self) -> ItemSearch:
        """Looks for words in its items; `SearchByReading(self)` where it has nothing better."""

    @property
    def word_index(self) -> WordIndex | None:
        """The index of words that it may have; None for a kind that cannot have one."""
