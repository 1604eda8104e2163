"""What every kind of store can be asked, and what it answers.

All methods are synchronous, open no transaction of their own unless they say so, and raise `StoreUnavailable` when the
store does not answer in time. `docs/own-kind.md` tells how to add a kind; `stores.paged` has what most of them share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.search_protocol import ItemSearch, WordIndex

PREVIEW_CHARACTERS = 160
"""How much of the first user text a list shows."""

READ_AHEAD = 64
"""How much more a preview reads: where it is cut, half of a number would stand that nobody knows for one."""

WHOLE_ITEM_BYTES = 256 * 1024
"""An item up to this size is read whole on a page of the timeline; of a longer one only both ends are."""

ITEM_HEAD_BYTES = 32 * 1024
ITEM_TAIL_BYTES = 4 * 1024

COUNTED_EXACTLY = 10_000
"""Up to so many rows, keys or sessions of a store are counted whenever somebody looks at it."""

Place = tuple[str, ...]
"""What a store has for itself, from the outside in: the sort of system, which one, and what of it. A place contains
those that go on where it ends. It is compared, and never kept or shown, so it has no secret in it and no address."""

IN_DOUBT = " Whether the change was made is not known: look, or do it again."
"""Behind what is said of a store that was asked for a change and did not answer."""


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


class ItemChanged(Exception):
    """The item is not any more what it was when it was read; nothing was changed. The caller reads it again."""


class NotPossible(Exception):
    """A kind of store cannot do this, as its capabilities say; asking all the same is a mistake of the caller's."""


class Capability(StrEnum):
    """What a store can do. The sentence is for an operator, where it cannot."""

    lack: str

    def __new__(cls, value: str, lack: str = "") -> Capability:
        member = str.__new__(cls, value)
        member._value_ = value
        member.lack = lack
        return member

    ENUMERATE = "enumerate", "It cannot list its sessions: only those are known that agents or operators register."
    ITEM_TIMES = "item times", "It keeps no time for an item, so nothing in it expires by age except whole sessions."
    ITEM_IDS = "item ids", "Its items have no ids: when one goes, those after it move up."
    ERASE_SESSIONS = "erase sessions", "Nothing can be erased in it."
    ERASE_IN_STEPS = "erase in steps", "A session is erased in one step, however long it is."
    ERASE_ITEMS = "erase items", "Single items cannot be taken out of a session."
    REPLACE_ITEMS = "replace items", "The text of an item cannot be replaced."
    FENCE = "fence", "It has no fence: an agent that is still running can write to an erased session again."
    WORD_INDEX = "word index", "It has no search index: a search reads its sessions from the newest on."
    # Nobody misses these where a store has none.
    SELF_EXPIRY = "self-expiry"
    BRANCHES = "branches"
    USAGE = "usage"


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session as a store lists it. Times are aware UTC, or None where the store keeps none."""

    session_id: str
    created_at: datetime | None = None
    last_activity_at: datetime | None = None
    mark: str = ""
    """Changes whenever the session is written to: who saw it with this mark need not look again. At most 64 letters;
    empty where nothing tells."""
    expires_at: datetime | None = None
    """When the store lets go of it by itself, unless it is written to before."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    sessions: Sequence[FoundSession]
    next_cursor: str = ""
    """Where to go on, in the kind's own words; empty at the end."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of one step of an erasure."""

    count: int
    """Number of items deleted by this step."""
    left: int
    """Number of items left, at most COUNT_CAP + 1, or fewer where the store cannot count. 0: the session is gone."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several courses that a session took from some point on."""

    name: str
    """As the agent named it; it may say anything."""
    number: int
    """For addresses, which must not say anything."""
    item_count: int
    """Capped at COUNT_CAP + 1; items that several branches share count in each."""
    turn_count: int


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """What the model calls of one user turn took, as the agents' process reported it."""

    turn: int
    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Preview:
    """What a list shows of one session. `item_count` is capped at COUNT_CAP + 1; None: the session is not there."""

    item_count: int | None
    first_user_text: str = ""
    """On one line, as stored, and up to READ_AHEAD longer than what is to be shown of it."""
    is_encrypted: bool = False
    expires_at: datetime | None = None
    """As of FoundSession. A store of which sessions can have one has SELF_EXPIRY."""


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


class Readable(Protocol):
    """What is said in the sessions of a store; also of one that is read through something, as sealed ones are."""

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

    @property
    def search(self) -> ItemSearch:
        """Looks for words in its items; `ScanSearch(self)` where it has nothing better."""

    @property
    def word_index(self) -> WordIndex | None:
        """The index of words that it may have; None for a kind that cannot have one."""


class Backend(Readable, Protocol):
    """One connected store, ready to be asked."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What this store can do. A method whose capability is missing raises NotPossible."""

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> Health:
        """How the store is, at a cost that does not grow with it; `thorough` may read all of it. Never raises."""

    def system(self) -> str:
        """The sort of system that it is in, as its settings tell: `postgresql`, `file`. Asks nothing.

        Stores in two sorts are never in one place. Empty where nobody can tell. Raises StoreUnavailable.
        """

    def places(self) -> AbstractSet[Place]:
        """Where it keeps what it has, the same however its settings say it. Raises StoreUnavailable."""

    def fingerprint(self) -> str:
        """Changes whenever anything in the store does, at next to no cost; empty where nothing tells."""

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        """About `limit` sessions beyond a cursor, in an order of the store's own.

        Every session that stands from the first page to the last is in one of them; one may be in two. Items without a
        row of their session count as a session, too. Needs ENUMERATE.
        """

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        """Those of these sessions that are there, at most a hundred at once. Of a store without ENUMERATE."""

    # --- one session, changed -----------------------------------------------------------------------------------------
    #
    # All of these take part in the way in which the SDK locks, wait for an agent for a few seconds, and raise
    # SessionBusy when that was not enough. They are safe to repeat, and their text is then not in files, logs or orphan
    # rows of the store either. Registry and store are two systems for most kinds: then the registry follows the
    # transaction of the caller, and the store has changed when the method returns.

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        """Deletes the newest items of a session, at most so many, and reports how many are left. Needs ERASE_SESSIONS.

        Each call is one short transaction: a savepoint inside a transaction of the caller, committed by itself
        otherwise. It marks the registry row as erased first, in the lock order of an erasure. So the fence, where the
        store has one, refuses all writes between two calls, and a session with items left is never listed as a
        complete one. The call that leaves no item also deletes the session itself and everything else that the store
        has of it. It selects rows by key and order, without reading their texts.

        The newest items go first, because the SDK reads the newest items: it drops a call without its output, and
        sends an output without its call to the model, which is refused there. Positions of the items left stay the
        same.

        Safe to repeat at any time, in any process: there is no state between two calls. A session that is not there
        gives 0 and 0. Without ERASE_IN_STEPS everything goes in one call, whatever `at_most` is; a store whose items
        share one document may have to read it.

        Raises SessionBusy and StoreUnavailable; this call has changed nothing then, unless the sentence says so.
        """

    def erase_session(self, session_id: str) -> int:
        """Calls `delete_some` until nothing is left; returns the number of deleted items. Needs ERASE_SESSIONS.

        All or nothing inside a transaction of the caller, if the store is in the same database. Otherwise a failure
        leaves the session marked as erased with some of its items, and the same call continues.
        """

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        """Puts a text in the place of the stored one; place, id and time of the item stay.

        Raises UnknownItem, and ItemChanged when what is stored is not `expected`. Needs REPLACE_ITEMS.
        """

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        """Takes items out of a session, all or none; returns how many. Those that are gone already count as done.

        The items are whole, as read. Raises ItemChanged when one of them is not any more what it was. What would stay
        without its other half, as an output without its call, is the caller's to think of. Needs ERASE_ITEMS.
        """


class Branching(Backend, Protocol):
    """A store that keeps several courses of one session, of which the agent goes on with one. Has BRANCHES.

    Its other methods answer for all of them together: an item that branches share is there once.
    """

    def branches(self, session_id: str) -> Sequence[Branch]:
        """In the order of their names' first use; at most a hundred."""

    def on_branch(self, branch: Branch) -> Readable:
        """The same store with nothing in the session but what this branch has. Places are the same in both."""

    def shared_count(self, session_id: str, branch: Branch) -> int:
        """How many items of a branch are in others as well, as far as they are counted."""

    def usage(self, session_id: str, branch: Branch) -> Sequence[TurnUsage]:
        """The newest turns, oldest of them first, as far as the agents noted them. Needs USAGE."""
