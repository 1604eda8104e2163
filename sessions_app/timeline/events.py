"""Values of a timeline: runs of turns of events, from which pages and files are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import ClassVar, Literal, TypeAlias

from sessions_app.items import Seal, StoredItem
from sessions_app.timeline.badges import Badge as Badge
from sessions_app.timeline.blocks import SHOWN_PARTS, Block, TextBlock
from sessions_app.timeline.findings import Finding
from sessions_app.timeline.values import length

Tone: TypeAlias = Literal["", "user", "warn", "bad"]


class ToolState(Enum):
    """Result of a call, as far as the stored items show it."""

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
    PARTLY_SHOWN = Badge("secondary", "circle-dashed", "partly shown")
    """No failure in the part that a page shows; there may be one in the other parts."""
    IN_PROGRESS = Badge("secondary", "circle-dashed", "not completed")

    @property
    def is_failure(self) -> bool:
        return self in (ToolState.FAILED, ToolState.NOT_APPROVED, ToolState.DENIED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event, from one stored item or a few that belong together."""

    kind: ClassVar[str]

    items: tuple[StoredItem, ...]
    icon: str = "tool"
    title: str
    detail: str = ""
    badges: tuple[Badge, ...] = ()
    notes: tuple[str, ...] = ()
    """Small print: facts of one or a few words each."""
    body: tuple[Block, ...] = ()
    agent: str = ""
    """Acting agent; only if a handoff of the same run names it."""
    is_collapsed: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def item(self) -> StoredItem:
        """The item at which the event is shown."""
        return self.items[0]

    @property
    def item_ids(self) -> tuple[str, ...]:
        """Ids of its own items, without those of nested events."""
        return tuple(item.id for item in self.items)

    @property
    def tone(self) -> Tone:
        """Tone of the interface for this event."""
        return "warn" if self.findings else ""

    @property
    def is_by_user(self) -> bool:
        return False

    @property
    def has_remarks(self) -> bool:
        """Whether there are remarks on its items; most events have none."""
        return bool(self.findings or self.large_items or self.hidden_items)

    @property
    def large_items(self) -> tuple[StoredItem, ...]:
        """Items of which only the ends were read."""
        return tuple(item for item in self.items if not item.is_whole)

    @property
    def masked_items(self) -> tuple[StoredItem, ...]:
        """Items with masked values."""
        return tuple(item for item in self.items if item.masked_count and not item.is_hidden)

    @property
    def hidden_items(self) -> tuple[StoredItem, ...]:
        """Items whose content is left out."""
        return tuple(item for item in self.items if item.is_hidden)

    def with_nested(self) -> Iterator[Event]:
        """This event and all nested events."""
        yield self

    @property
    def held_item_ids(self) -> tuple[str, ...]:
        """Ids of its items, with those of nested events."""
        return tuple(item_id for event in self.with_nested() for item_id in event.item_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(Event):
    """A message. `title` is its author."""

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
    """A call with its output. `body` is the call."""

    kind: ClassVar = "tool"
    state: ToolState
    output: tuple[Block, ...] = ()
    output_item: StoredItem | None = None
    """The item with the output, if it is another one than the call's."""
    is_named: bool = False
    """Whether the title is the tool's own name, and not the console's name for a kind of tool."""
    nested: tuple[Event, ...] = ()
    """Calls that a program made."""

    @property
    def duration(self) -> str:
        """Time between the writing of the call and of its output; empty if both were written together, or without
        times."""
        asked_at, answered_at = self.item.written_at, self.output_item and self.output_item.written_at
        return length(answered_at - asked_at) if asked_at and answered_at and answered_at > asked_at else ""

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
    to_agent: str
    is_certain: bool
    """Whether the output is there; without it `to_agent` is read from the tool's name only."""

    @property
    def has_remarks(self) -> bool:
        """Whether there are remarks; always true if the output is an item of its own, which is linked."""
        return bool(self.findings or self.items[1:] or self.large_items or self.hidden_items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning(Event):
    kind: ClassVar = "reasoning"
    icon: str = "bulb"
    opaque_byte_count: int
    """Size of the part that only the provider can read."""
    next_item_id: str
    """Id of the item that it belongs to and has to be erased with; empty if that is not on this page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction(Event):
    kind: ClassVar = "compaction"
    icon: str = "fold"
    opaque_byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Encrypted(Event):
    """Neighbouring encrypted items that are alike; only times and sizes are known."""

    kind: ClassVar = "encrypted"
    icon: str = "lock"
    first_at: datetime | None
    last_at: datetime | None
    sentences: tuple[str, ...] = ()
    """Problems of these items, as far as they were examined."""

    @property
    def seal(self) -> Seal | None:
        """Seal that all of them share; None if they were not examined."""
        return self.item.seal

    @property
    def can_be_opened(self) -> bool:
        """Whether a grant is enough to decrypt them."""
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
    """Any other stored item: set-up, references, and types that this version does not know."""

    kind: ClassVar = "note"


@dataclass(frozen=True, slots=True)
class Turn:
    """The events of one batch, written together."""

    written_at: datetime | None
    events: tuple[Event, ...]

    @property
    def is_input(self) -> bool:
        """Whether it contains input only, from before the model was called."""
        return all(isinstance(event, Message) and event.is_input for event in self.events)


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """One call of the runner, or the part of it in the window."""

    number: int | None
    """Number from the start of the session; None if the window begins later."""
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
        """Number of answers of the model: batches other than the input."""
        return sum(not turn.is_input for turn in self.turns)

    @property
    def extent(self) -> str:
        """Size in words: "4 items, 2 turns"."""
        counts = {"item": self.item_count, "turn": self.turn_count}
        return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for word, count in counts.items() if count)

    @property
    def agents(self) -> tuple[str, ...]:
        """Agents that are known to have acted, in order."""
        names = []
        for event in self.events:
            names.append(event.agent)
            if isinstance(event, Handoff) and event.is_certain:
                names.append(event.to_agent)
        return tuple(dict.fromkeys(filter(None, names)))


@dataclass(frozen=True, slots=True)
class Timeline:
    most_parts: ClassVar = SHOWN_PARTS
    runs: tuple[TimelineRun, ...]
    findings: tuple[Finding, ...]
    """Findings in the order of their items."""

    @property
    def events(self) -> Iterator[Event]:
        """All events, with the nested ones."""
        return (nested for run in self.runs for event in run.events for nested in event.with_nested())
