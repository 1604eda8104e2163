"""Input and output types of distillers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from memadmin.batching import batched
from memadmin.client.secret_text import MASKED, mask_text
from memories_app.tool_provenance import ToolsBehind
from sessions_app.items import StoredItem
from sessions_app.timeline import build_timeline
from sessions_app.timeline.blocks import TextBlock
from sessions_app.timeline.events import Message

LONGEST_SAID = 20_000
"""Maximum of characters read of one message; longer ones are pasted text."""

ITEMS_A_BATCH = 200

SPEAKERS = ("user", "assistant")
"""Roles whose messages are read. Output of tools, pages and instructions contain no wishes of users."""

OPERATOR = "operator"
"""Speaker of notes that operators wrote about items in the console."""

RATING = "rating"
"""Speaker of comments that came with a rating or the outcome of a run, through the agents' client."""


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """A message, its secrets masked."""

    item_id: str
    speaker: str
    text: str
    at: datetime | None = None
    signal_id: UUID | None = None
    """Set if it is a note about an item or a run, not a message of the session."""
    verdict: int = 0
    """Verdict of a note: -1 if the answer or run was bad, 1 if it was good, 0 without a verdict."""
    is_context: bool = False
    """Read before: context for later messages, not a source of memories."""
    tools: tuple[str, ...] = ()
    """Names of tools that may have influenced it."""


@dataclass(frozen=True, slots=True)
class DistilledMemory:
    """A possible memory, with a quote from `said`."""

    kind: str
    statement: str
    quote: str
    said: SessionMessage
    key: str = ""
    is_explicit: bool = True
    confidence: float = 0.5

    @property
    def is_proven(self) -> bool:
        return quote_is_in(self.quote, self.said.text)

    @property
    def has_secret(self) -> bool:
        return MASKED in self.statement or MASKED in self.key or MASKED in self.quote


@dataclass(frozen=True, slots=True)
class Before:
    """Existing summaries of the session and of its subject, with any decision; empty without one."""

    session_summary: str = ""
    subject_summary: str = ""


class OmissionReason(StrEnum):
    """Why a result is not proposed; the value is stored, the label is shown."""

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
            OmissionReason.TOO_MANY: "the model returned too many results",
        }[self]


@dataclass(slots=True)
class DistillingCost:
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class DistillationResult:
    """Result of a distiller for a session. `left_out` counts dropped results by reason."""

    found: Sequence[DistilledMemory] = ()
    summary: str = ""
    """Summary of the whole session."""
    subject_summary: str = ""
    """Lasting facts about the subject; empty if this session changes nothing."""
    cost: DistillingCost = field(default_factory=DistillingCost)
    left_out: Counter[OmissionReason] = field(default_factory=Counter)


class Distiller(Protocol):
    name: str
    """With its version; stored with its proposals."""

    def read(self, said: Sequence[SessionMessage], *, before: Before) -> DistillationResult:
        """The result for a session, or for its new messages after some context. Raises Unread with the cost so far."""
        ...


class Unread(Exception):
    """A session was not distilled; nothing of it is proposed."""

    def __init__(self, cost: DistillingCost) -> None:
        self.cost = cost
        super().__init__(type(self).__name__)


class Nonsense(Unread):
    """The output of the model is invalid."""


class DistillingTimeout(Unread):
    pass


class Failed(Unread):
    """The model could not be called."""


def quote_is_in(quote: str, text: str) -> bool:
    """Whether a text contains a quote, ignoring spacing and case."""
    return bool(quote.strip()) and _plain(quote) in _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def said_in(items: Iterable[StoredItem], *, context: Container[str] = ()) -> Iterator[SessionMessage]:
    """Messages of users and assistants, in order; encrypted items are skipped. `context` are the ids of items read
    before."""
    behind = ToolsBehind()
    for batch in batched(items, ITEMS_A_BATCH):
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
