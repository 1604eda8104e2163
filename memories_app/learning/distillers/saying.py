"""What distillers read, and what they answer with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Protocol
from uuid import UUID

from memadmin.client.secret_text import MASKED, mask_text
from memories_app.tool_provenance import ToolsBehind
from sessions_app.items import StoredItem
from sessions_app.timeline import build_timeline
from sessions_app.timeline.blocks import TextBlock
from sessions_app.timeline.events import Message

LONGEST_SAID = 20_000
"""Of one message so many characters are read; what is longer was pasted."""

ITEMS_A_BATCH = 200

SPEAKERS = ("user", "assistant")
"""Whose words are read. What tools, pages and instructions say is nobody's wish."""

OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message, its secrets masked."""

    item_id: str
    speaker: str
    text: str
    at: datetime | None = None
    signal_id: UUID | None = None
    """Where an operator said it about an item, and not somebody in the session."""
    is_context: bool = False
    """Read before: it tells what later words mean, and nothing is learned from it again."""
    tools: tuple[str, ...] = ()
    """What may be behind it, by their names."""


@dataclass(frozen=True, slots=True)
class DistilledMemory:
    """Something that might be remembered, with the words it comes from, as they stand in `said`."""

    kind: str
    statement: str
    quote: str
    said: SessionMessage
    key: str = ""
    is_explicit: bool = True
    confidence: float = 0.5

    @property
    def is_proven(self) -> bool:
        return stands_in(self.quote, self.said.text)

    @property
    def has_secret(self) -> bool:
        return MASKED in self.statement or MASKED in self.key or MASKED in self.quote


@dataclass(frozen=True, slots=True)
class Before:
    """What was made of the session and of its subject up to now, whoever decided what about it; empty where nothing."""

    session_summary: str = ""
    subject_summary: str = ""


class OmissionReason(StrEnum):
    """Why something that a distiller found is not proposed; the value is stored, the label is told."""

    UNPROVEN = "unproven"
    READ_BEFORE = "read_before"
    UNFIT = "unfit"
    SECRET = "secret"
    TOO_MANY = "too_many"

    @property
    def label(self) -> str:
        return {
            OmissionReason.UNPROVEN: "its quote is not in the referenced message",
            OmissionReason.READ_BEFORE: "it comes from a message that was read before",
            OmissionReason.UNFIT: "it is empty, too long or not a valid memory",
            OmissionReason.SECRET: "it contains a password, key or card number",
            OmissionReason.TOO_MANY: "there were too many",
        }[self]


@dataclass(slots=True)
class DistillingCost:
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class DistillationResult:
    """What a distiller made of a session. `left_out` counts what it answered and cannot be believed."""

    found: Sequence[DistilledMemory] = ()
    summary: str = ""
    """Of the session, up to its end."""
    subject_summary: str = ""
    """What lasts of all that is known of the subject; empty where this session changes nothing."""
    cost: DistillingCost = field(default_factory=DistillingCost)
    left_out: Counter[OmissionReason] = field(default_factory=Counter)


class Distiller(Protocol):
    name: str
    """With its version; kept with all that it proposes."""

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        """Of a session, or of what is new in it behind some context. Raises Unread, with what it cost up to there."""
        ...


class Unread(Exception):
    """A session was not distilled; nothing of it is proposed."""

    def __init__(self, cost: DistillingCost) -> None:
        self.cost = cost
        super().__init__(type(self).__name__)


class Nonsense(Unread):
    """The model answered what cannot be read."""


class DistillingTimeout(Unread):
    pass


class Failed(Unread):
    """The model could not be asked."""


def stands_in(words: str, text: str) -> bool:
    """Whether some words were said, however they are spaced and written."""
    return bool(words.strip()) and _plain(words) in _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def said_in(items: Iterable[StoredItem], *, context: Container[str] = ()) -> Iterator[SessionMessage]:
    """What users and assistants said, in order; sealed items that nobody opened say nothing. `context` are the ids of
    items that were read before."""
    stored, behind = iter(items), ToolsBehind()
    while batch := list(islice(stored, ITEMS_A_BATCH)):
        for event in build_timeline(batch, starts_session=False, ends_session=False).events:
            tools = tuple(behind.of(event))
            if isinstance(event, Message) and event.role in SPEAKERS:
                text = "\n".join(block.full for block in event.body if isinstance(block, TextBlock))
                if text.strip():
                    masked = mask_text(text[:LONGEST_SAID])[0]
                    item = event.item
                    yield SessionMessage(
                        item.id, event.role, masked, item.written_at, is_context=item.id in context, tools=tools
                    )
