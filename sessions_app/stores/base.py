"""Protocol of stores: the methods of every kind, their results and their errors.

All methods are synchronous, open no transaction of their own unless documented, and raise `StoreUnavailable` when the
store does not respond in time. `docs/own-kind.md` explains how to add a kind; `stores.paged` is the common base class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.stores.search_protocol import ItemSearch, WordIndex

if TYPE_CHECKING:
    from django.db.models import Q, QuerySet

    from sessions_app.models import SessionRecord

PREVIEW_CHARACTERS = 160
"""Length of the first user text in a list."""

READ_AHEAD = 64
"""Further characters that a preview reads, so that a number at the cut is still recognised and masked."""

WHOLE_ITEM_BYTES = 256 * 1024
"""An item up to this size is read whole on a page of the timeline; of a longer one only both ends are."""

ITEM_HEAD_BYTES = 32 * 1024
ITEM_TAIL_BYTES = 4 * 1024

COUNTED_EXACTLY = 10_000
"""Largest number of rows, keys or sessions that a health check counts; larger numbers are estimated."""

Place = tuple[str, ...]
"""Location of a store, from the outside in: the sort of system, the system, and the part of it. A place contains all
places that begin with it. It is compared, and never kept or shown; it contains no secret and no address."""

IN_DOUBT = " The change may have been made: check, or try again."
"""Appended to the error of a store that did not respond to a change."""

UNCAPPED = 10**12
"""For `count`, which stops at its cap: more items than any session has."""


class StoreUnavailable(Exception):
    """The store did not respond, or its tables do not exist; the message is a sentence for an operator."""


class SessionUnreadable(StoreUnavailable):
    """This session cannot be read; the others of its store can."""


class SessionBusy(StoreUnavailable):
    """The agents hold the session's rows; the caller rolls back and may try again."""


class StoreLocked(StoreUnavailable):
    """Another transaction holds a lock on a whole table of the store; readers wait for it, too."""

    def __init__(self) -> None:
        super().__init__(
            "Another transaction has locked the agents' tables, perhaps to change their columns. Try again when it is"
            " over."
        )


class StoreTooSlow(StoreUnavailable):
    """A statement took longer than it may, and was cancelled."""


class UnknownItem(Exception):
    """There is no item with this id in this session."""


class ItemChanged(Exception):
    """The item has changed since it was read; nothing was changed. The caller reads it again."""


class UnsupportedOperation(Exception):
    """The kind of store lacks the capability; the caller should have checked it."""


class Capability(StrEnum):
    """Ability of a store. `lack` is the sentence for operators about a store without it."""

    lack: str

    def __new__(cls, value: str, lack: str = "") -> Capability:
        member = str.__new__(cls, value)
        member._value_ = value
        member.lack = lack
        return member

    ENUMERATE = "enumerate", "It cannot list its sessions: agents or operators have to register them."
    ITEM_TIMES = "item times", "Its items have no timestamps, so only whole sessions can expire by age."
    ITEM_IDS = "item ids", "Its items have no ids: when one is deleted, those after it move up."
    ERASE_SESSIONS = "erase sessions", "Its sessions cannot be erased."
    ERASE_IN_STEPS = "erase in steps", "A session is always erased in one step, even a long one."
    ERASE_ITEMS = "erase items", "Single items of a session cannot be deleted."
    REPLACE_ITEMS = "replace items", "The text of an item cannot be replaced."
    FENCE = "fence", "It has no fence: an agent that is still running can write to an erased session again."
    WORD_INDEX = "word index", "It has no search index: a search reads the sessions one by one, newest first."
    # Without a sentence: no operator needs to know about a store without these.
    SELF_EXPIRY = "self-expiry"
    BRANCHES = "branches"
    USAGE = "usage"


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A session as listed by its store. Times are aware UTC, or None if the store keeps none."""

    session_id: str
    created_at: datetime | None = None
    last_activity_at: datetime | None = None
    mark: str = ""
    """Changes with every write to the session: a session with the same mark needs no second inspection. At most 64
    letters; empty if the store offers nothing suitable."""
    expires_at: datetime | None = None
    """Time at which the store deletes it by itself, unless an agent writes to it before."""

    @property
    def change_mark(self) -> str:
        """The mark as the registry stores it: it may contain what an agent wrote instead of a time."""
        return ascii(self.mark)[1:-1][:64]


@dataclass(frozen=True, slots=True)
class SessionPage:
    sessions: Sequence[FoundSession]
    next_cursor: str = ""
    """Cursor of the next page, in the kind's own format; empty at the end."""
    odd_ids: int = 0
    """Number of sessions that are not listed because their ids are no text; with the first page."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of one step of an erasure."""

    count: int
    """Number of items deleted by this step."""
    left: int
    """Number of items left, at most COUNT_CAP + 1, or fewer where the store cannot count. 0: the session is gone."""


@dataclass(frozen=True, slots=True)
class Branch:
    """One of several continuations of a session from some item on."""

    name: str
    """The agent's name for it; any text."""
    number: int
    """Identifier for URLs, which must not contain text of agents."""
    item_count: int
    """Capped at COUNT_CAP + 1; items that several branches share count in each."""
    turn_count: int


@dataclass(frozen=True, slots=True)
class TurnUsage:
    """Tokens and requests of one user turn, as reported by the agents' process."""

    turn: int
    requests: int
    input_tokens: int
    output_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class SessionPreview:
    """Preview of one session in a list. `item_count` is capped at COUNT_CAP + 1; None: there is no such session."""

    item_count: int | None
    first_user_text: str = ""
    """On one line, as stored, and up to READ_AHEAD longer than the displayed part."""
    is_encrypted: bool = False
    expires_at: datetime | None = None
    """As in FoundSession. Stores whose sessions can have one have SELF_EXPIRY."""
    is_readable: bool = True
    """False if there are items and none of the first ones is a JSON object."""


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """A problem of a store: a stable code for scripts, a sentence for people."""

    code: str
    sentence: str
    is_fatal: bool = False


@dataclass(frozen=True, slots=True)
class StoreHealth:
    problems: Sequence[StoreProblem] = field(default_factory=tuple)
    sessions: int | None = None
    """Approximate number, from statistics; None if unknown."""
    items: int | None = None
    fence: str = "unsupported"
    """on, off or unsupported."""
    answered_in_ms: float | None = None
    hints: Sequence[str] = ()
    """Sentences about missing settings, and about the consequences until they are set."""
    layout: str = ""
    """The layout that was found, as a sentence that names the versions of the library; empty if it is not known."""

    @property
    def state(self) -> str:
        """ok, degraded or down."""
        if any(problem.is_fatal for problem in self.problems):
            return "down"
        return "degraded" if self.problems else "ok"


class Readable(Protocol):
    """Read access to the sessions of a store, direct or through a wrapper such as decryption."""

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        """One entry for each id asked. One query however many ids, and its cost does not grow with long sessions."""

    def first_page(self, session_id: str, limit: int) -> ItemPage: ...

    def last_page(self, session_id: str, limit: int) -> ItemPage: ...

    def page_after(self, session_id: str, position: Position, limit: int) -> ItemPage: ...

    def page_before(self, session_id: str, position: Position, limit: int) -> ItemPage: ...

    def page_at(self, session_id: str, position: Position, limit: int) -> ItemPage:
        """The page that begins with the item at a position, or with the next item if that one is gone."""

    def page_around(self, session_id: str, item_id: str, limit: int) -> ItemPage:
        """The page with this item in its middle. Raises UnknownItem."""

    def page_from(self, session_id: str, instant: datetime, limit: int) -> ItemPage:
        """The page that begins with the first item written at or after an instant; the last page if there is none."""

    def item(self, session_id: str, item_id: str) -> StoredItem:
        """One item, whole, however large. Raises UnknownItem."""

    def every_item(self, session_id: str) -> Iterator[StoredItem]:
        """All items, whole, oldest first, read in batches: for exports and inspection."""

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        """Number of items, at most cap + 1."""

    @property
    def search(self) -> ItemSearch:
        """Search for words in its items; `ScanSearch(self)` unless the store has a faster way."""

    @property
    def word_index(self) -> WordIndex | None:
        """Optional full-text index of the store; None for a kind that cannot have one."""


class Backend(Readable, Protocol):
    """One connected store."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """Abilities of this store. A method without its capability raises UnsupportedOperation."""

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        """Health of the store, at constant cost; `thorough` may read all of the store. Never raises."""

    def system(self) -> str:
        """Sort of system according to the settings: `postgresql`, `file`. Does not connect.

        Stores of two sorts never share a place. Empty if unknown. Raises StoreUnavailable.
        """

    def places(self) -> AbstractSet[Place]:
        """Locations of its data, equal for all settings that lead to the same location. Raises StoreUnavailable."""

    def fingerprint(self) -> str:
        """Value that changes with every write to the store, at almost no cost; empty if the store offers none."""

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        """About `limit` sessions beyond a cursor, in an order of the store's own.

        Every session that exists from the first page to the last is in at least one of them. Items without a
        session row count as a session, too. Needs ENUMERATE.
        """

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        """The existing ones among at most a hundred sessions, with their marks as they are now.

        Discovery calls it where a store lacks ENUMERATE, and retention before it deletes. A kind that has ENUMERATE and
        ITEM_TIMES need not give marks here.
        """

    # --- one session, changed -----------------------------------------------------------------------------------------
    #
    # All of these lock as the SDK does, wait for an agent for a few seconds, and then raise SessionBusy. They are safe
    # to repeat. Afterwards the text is not in files, logs or orphan rows of the store either. For most kinds registry
    # and store are two systems: then the registry follows the transaction of the caller, and the change of the store is
    # permanent when the method returns.

    def count_each(self, session_ids: Sequence[str]) -> Mapping[str, int]:
        """Numbers of all items of these sessions, however many. Raises StoreUnavailable."""

    def with_items(self, records: QuerySet[SessionRecord], condition: Q, **aggregates: Any) -> dict[str, Any]:
        """The aggregates of a query of session records of the store, and as `items` the number of all items of those
        that meet the condition. At once they must not be too many: all their ids are collected. Raises
        StoreUnavailable.
        """

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

    def delete_whole(
        self, session_ids: Sequence[str], *, at_most: int, close: Callable[[Sequence[str]], object] | None = None
    ) -> Mapping[str, int]:
        """Deletes the first of these sessions that have together at most so many items, in one transaction as
        `delete_some` does each; returns their numbers of items. Many short sessions take a tenth of the time.

        `close` is called with the ids of those that go, when their rows are locked, and does with their registry rows
        what must be done before the items go. It can delete the rows; without it they are marked as erased. What it
        raises is passed on, with nothing changed.

        Empty, and nothing was changed, if the first one has more items, an agent holds one, or the store deletes one
        at a time: then `delete_some` deletes the first. Raises StoreUnavailable.
        """

    def show_rest(self, session_id: str) -> None:
        """Lets agents and pages see what is left of a session whose deletion began and does not go on: it must be kept.

        Nothing to do where a deletion in steps hides nothing. Safe to repeat. Raises StoreUnavailable.
        """

    def erase_session(self, session_id: str) -> int:
        """Calls `delete_some` until nothing is left; returns the number of deleted items. Needs ERASE_SESSIONS.

        All or nothing inside a transaction of the caller, if the store is in the same database. Otherwise a failure
        leaves the session marked as erased with some of its items, and the same call continues.
        """

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        """Replaces the stored text; position, id and time of the item stay.

        Raises UnknownItem, and ItemChanged when what is stored is not `expected`. Needs REPLACE_ITEMS.
        """

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        """Deletes some items of a session, all or none; returns their number. Items that are gone already count as
        done.

        The items are whole, as read. Raises ItemChanged if one of them has changed. The caller has to choose pairs
        together, such as a call and its output. Needs ERASE_ITEMS.
        """


class Branching(Backend, Protocol):
    """A store with branches: several continuations of one session, one of which the agent uses. Has BRANCHES.

    Its other methods cover all branches together; an item that branches share is there once.
    """

    def branches(self, session_id: str) -> Sequence[Branch]:
        """In the order of their names' first use; at most a hundred."""

    def on_branch(self, branch: Branch) -> Readable:
        """The same store with only the items of this branch in the session. Positions are the same in both."""

    def shared_count(self, session_id: str, branch: Branch) -> int:
        """Number of items of a branch that are in other branches as well, as far as they are counted."""

    def usage(self, session_id: str, branch: Branch) -> Sequence[TurnUsage]:
        """Usage of the newest turns, oldest first, as far as the agents recorded it. Needs USAGE."""
