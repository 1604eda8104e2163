"""What a timeline is made of: runs of turns of events, as values that a page or a file can be written from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar, Literal, TypeAlias

from sessions_app.items import Seal, StoredItem
from sessions_app.timeline.badges import Badge as Badge
from sessions_app.timeline.blocks import Block, TextBlock
from sessions_app.timeline.findings import Finding

Tone: TypeAlias = Literal["", "user", "warn", "bad"]


class ToolState(Enum):
    """How a call came out, as far as the stored items tell."""

    OK = Badge("green", "check", "ok")
    FAILED = Badge("red", "alert-octagon", "failed")
    NOT_APPROVED = Badge("red", "ban", "not approved")
    IGNORED = Badge("orange", "ban", "ignored")
    APPROVED = Badge("green", "user-check", "approved")
    DENIED = Badge("red", "ban", "denied")
    AWAITING_APPROVAL = Badge("yellow", "user-check", "awaits approval")
    UNANSWERED = Badge("orange", "alert-triangle", "no output")
    UNCALLED = Badge("orange", "alert-triangle", "no call")
    OUTPUT_ELSEWHERE = Badge("secondary", "chevron-right", "output is on a later page")
    CALL_ELSEWHERE = Badge("secondary", "chevron-left", "call is on an earlier page")
    IN_PROGRESS = Badge("secondary", "circle-dashed", "not completed")

    @property
    def is_failure(self) -> bool:
        return self in (ToolState.FAILED, ToolState.NOT_APPROVED, ToolState.DENIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened, told by one stored item or by a few that belong together."""

    kind: ClassVar[str]
    is_across: ClassVar[bool] = False
    """Whether it stands across the timeline, rather than as something that somebody said or did."""

    items: tuple[StoredItem, ...]
    icon: str = "tool"
    title: str
    detail: str = ""
    badges: tuple[Badge, ...] = ()
    notes: tuple[str, ...] = ()
    """Small print: facts worth a word each."""
    body: tuple[Block, ...] = ()
    agent: str = ""
    """Who acted; only where a handoff of the same run names it."""
    is_collapsed: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def item(self) -> StoredItem:
        """The item that the event stands at."""
        return self.items[0]

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Its own items, without those of events nested in it."""
        return tuple(item.id for item in self.items)

    @property
    def tone(self) -> Tone:
        """How the interface marks it."""
        return "warn" if self.findings else ""

    @property
    def is_by_user(self) -> bool:
        return False

    @property
    def has_remarks(self) -> bool:
        """Whether anything has to be said about its items; of most there is nothing."""
        return bool(self.findings or self.large_items)

    @property
    def large_items(self) -> tuple[StoredItem, ...]:
        """The items of which only the ends were read."""
        return tuple(item for item in self.items if not item.is_whole)

    @property
    def masked_items(self) -> tuple[StoredItem, ...]:
        """The items in which values are masked."""
        return tuple(item for item in self.items if item.masked_count)

    def with_nested(self) -> Iterator[Event]:
        """This event and all events shown inside it."""
        yield self

    @property
    def held_item_ids(self) -> tuple[str, ...]:
        """Its items, with those of events nested in it."""
        return tuple(item_id for event in self.with_nested() for item_id in event.item_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Event):
    """Something said. `title` is who said it."""

    kind: ClassVar = "message"
    role: str
    is_refusal: bool = False

    @property
    def tone(self) -> Tone:
        return "warn" if self.findings else "user" if self.is_by_user else ""

    @property
    def is_by_user(self) -> bool:
        return self.role == "user"

    @property
    def is_input(self) -> bool:
        return self.role in ("user", "system", "developer")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall(Event):
    """A call with what came back. `body` is what was asked for."""

    kind: ClassVar = "tool"
    state: ToolState
    output: tuple[Block, ...] = ()
    output_item: StoredItem | None = None
    """The item that holds the output, where it is another one than the call's."""
    is_named: bool = False
    """Whether the title is the tool's own name, rather than ours for a kind of tool."""
    nested: tuple[Event, ...] = ()
    """The calls that a program made."""

    @property
    def tone(self) -> Tone:
        return "warn" if self.findings else "bad" if self.state.is_failure else ""

    def with_nested(self) -> Iterator[Event]:
        yield self
        yield from self.nested


@dataclass(frozen=True, slots=True, kw_only=True)
class Handoff(Event):
    kind: ClassVar = "handoff"
    icon: str = "arrows-exchange"
    from_agent: str
    """Empty unless an earlier handoff of the run says who acted."""
    to_agent: str
    is_certain: bool
    """Whether the output is there; without it `to_agent` is only what the tool's name says."""

    @property
    def has_remarks(self) -> bool:
        """The place of the output, too."""
        return bool(self.findings or self.items[1:] or self.large_items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning(Event):
    kind: ClassVar = "reasoning"
    icon: str = "bulb"
    sealed_byte_count: int
    """Size of the part that only the provider can read."""
    next_item_id: str
    """The item that it belongs to and has to be erased with; empty when that is not on this page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Event):
    kind: ClassVar = "compaction"
    is_across: ClassVar = True
    icon: str = "fold"
    sealed_byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Encrypted(Event):
    """Neighbouring sealed items that are alike, of which only times and sizes can be told."""

    kind: ClassVar = "encrypted"
    is_across: ClassVar = True
    icon: str = "lock"
    first_at: datetime | None
    last_at: datetime | None
    sentences: tuple[str, ...] = ()
    """What is the matter with them, as far as somebody has looked."""

    @property
    def seal(self) -> Seal | None:
        """One for all of them; None where nobody has looked at it."""
        return self.item.seal

    @property
    def can_be_opened(self) -> bool:
        """Whether it only takes a grant."""
        return self.seal is not None and self.seal.is_proven

    @property
    def byte_count(self) -> int:
        return sum(item.byte_count for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableItem(Event):
    kind: ClassVar = "unreadable"
    icon: str = "file-unknown"
    problem: str
    raw: TextBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteEvent(Event):
    """Anything else that the SDK stores: set-up, references, and types that this version does not know."""

    kind: ClassVar = "note"


@dataclass(frozen=True, slots=True)
class Turn:
    """The events of one batch: what was written together."""

    written_at: datetime | None
    events: tuple[Event, ...]

    @property
    def is_input(self) -> bool:
        """Whether nothing but input was written, before the model was asked."""
        return all(isinstance(event, Message) and event.is_input for event in self.events)


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """One call of the runner, or the part of it that the window shows."""

    number: int | None
    """Counted from the start of the session; None when the window begins later, so that nobody knows."""
    turns: tuple[Turn, ...]

    @property
    def events(self) -> Iterator[Event]:
        return (event for turn in self.turns for event in turn.events)

    @property
    def anchor(self) -> str:
        return next(self.events).item.id

    @property
    def started_at(self) -> datetime | None:
        return self.turns[0].written_at

    @property
    def item_count(self) -> int:
        return sum(len(nested.items) for event in self.events for nested in event.with_nested())

    @property
    def turn_count(self) -> int:
        """How often the model answered: batches other than the input."""
        return sum(not turn.is_input for turn in self.turns)

    @property
    def extent(self) -> str:
        """In words: "4 items, 2 turns"."""
        counts = {"item": self.item_count, "turn": self.turn_count}
        return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that are known to have acted, in order."""
        names = []
        for event in self.events:
            names.append(event.agent)
            if isinstance(event, Handoff) and event.is_certain:
                names.append(event.to_agent)
        return tuple(dict.fromkeys(filter(None, names)))


@dataclass(frozen=True, slots=True)
class Timeline:
    runs: tuple[TimelineRun, ...]
    findings: tuple[Finding, ...]
    """In the order of their items."""

    @property
    def events(self) -> Iterator[Event]:
        """Every event, also those nested in others."""
        return (nested for run in self.runs for event in run.events for nested in event.with_nested())
