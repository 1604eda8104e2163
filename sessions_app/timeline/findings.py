"""Inspection rules: findings of a session, one item at a time.

The page and the inspection of whole sessions use the same rules. A window that begins or ends in the middle of a
session reports only what no item outside it could explain, so its findings are always findings of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sessions_app.items import Position, Seal, SealState, StoredItem
from sessions_app.timeline.decode import DecodedItem, decode
from sessions_app.timeline.handoffs import agent_handed_to, is_handoff_call
from sessions_app.timeline.pairing import OpenCalls, call_family, output_key
from sessions_app.timeline.values import one_line, text_in

INPUT_ROLES = frozenset({"user", "system", "developer"})
AGENTS_KEPT = 50

APPROVABLE = frozenset({"function", "custom", "computer", "local_shell", "shell", "apply_patch", "mcp_approval"})
"""Families of calls that the SDK can hold back until a person approves them."""


class FindingCode(StrEnum):
    """Codes of findings. They are stored, filtered by and used in scripts, so they never change."""

    OUTPUT_WITHOUT_CALL = "output_without_call"
    CALL_WITHOUT_OUTPUT = "call_without_output"
    APPROVAL_OPEN = "approval_open"
    UNANSWERED_TEXT = "unanswered_text"
    UNDECODABLE = "undecodable"
    UNREADABLE_TIME = "unreadable_time"
    PLAINTEXT_AMONG_ENCRYPTED = "plaintext_among_encrypted"
    PLAINTEXT_BEFORE_ENCRYPTED = "plaintext_before_encrypted"
    NO_KEY = "no_key"
    KEY_DESTROYED = "key_destroyed"
    WRONG_KEY = "wrong_key"
    OTHER_KEY = "other_key"
    TAMPERED = "tampered"
    EXPIRED_FOR_AGENTS = "expired_for_agents"
    COMPACTION = "compaction"
    OUT_OF_ORDER = "out_of_order"


TITLES = {
    FindingCode.OUTPUT_WITHOUT_CALL: "output without a call",
    FindingCode.CALL_WITHOUT_OUTPUT: "call without an output",
    FindingCode.APPROVAL_OPEN: "approval pending",
    FindingCode.UNANSWERED_TEXT: "user message without an answer",
    FindingCode.UNDECODABLE: "not readable as JSON",
    FindingCode.UNREADABLE_TIME: "unreadable time",
    FindingCode.PLAINTEXT_AMONG_ENCRYPTED: "plain text among encrypted items",
    FindingCode.PLAINTEXT_BEFORE_ENCRYPTED: "plain text before the encrypted items",
    FindingCode.NO_KEY: "encrypted, key not available",
    FindingCode.KEY_DESTROYED: "encrypted, key destroyed",
    FindingCode.WRONG_KEY: "encrypted with a different key",
    FindingCode.OTHER_KEY: "not encrypted with the store's key",
    FindingCode.TAMPERED: "tampered encryption",
    FindingCode.EXPIRED_FOR_AGENTS: "expired for agents, still stored",
    FindingCode.COMPACTION: "compaction may contain erased text",
    FindingCode.OUT_OF_ORDER: "written out of order",
}


def title_of(code: str) -> str:
    """Title of a stored code; the code itself if another version has written it."""
    return next((title for known, title in TITLES.items() if known == code), code)


SENTENCES = {
    FindingCode.OUTPUT_WITHOUT_CALL: (
        "This output belongs to {call}, which is not in the history: the call was erased, removed by the agent or "
        "compacted. "
        "The next run of the agent may fail with “No tool call found”."
    ),
    FindingCode.CALL_WITHOUT_OUTPUT: (
        "No output is stored for this call: its run was stopped. The agent skips the call in later runs."
    ),
    FindingCode.APPROVAL_OPEN: ("This tool call has no output: the run is waiting for approval or was abandoned."),
    FindingCode.UNANSWERED_TEXT: (
        "The next user message follows without an answer: the run failed, was blocked or cancelled. The agent "
        "reads this message again in every later run."
    ),
    FindingCode.UNDECODABLE: "The stored text cannot be read: {problem}. The agent skips it; nothing was changed.",
    FindingCode.UNREADABLE_TIME: (
        "What is stored as the time of this item is not a valid time. The item is shown without a time, in the agent's"
        " order."
    ),
    FindingCode.PLAINTEXT_AMONG_ENCRYPTED: (
        "Stored in plain text after encrypted items. An agent that holds the key does not see it."
    ),
    FindingCode.PLAINTEXT_BEFORE_ENCRYPTED: (
        "Encrypted from here on; earlier items are stored in plain text. An agent that holds the key does not see them."
    ),
    FindingCode.NO_KEY: "From here on, encrypted items cannot be read: this console does not have the key.",
    FindingCode.KEY_DESTROYED: (
        "From here on, encrypted items cannot be read by anybody: the key of the subject was destroyed."
    ),
    FindingCode.WRONG_KEY: (
        "From here on, the store's key does not decrypt the items: agents that use it cannot read them either."
    ),
    FindingCode.OTHER_KEY: (
        "From here on, items are encrypted with another key of the keyring. Agents that use the store's key "
        "cannot read them."
    ),
    FindingCode.TAMPERED: (
        "The session's key does not decrypt this item: it was changed, moved here, or encrypted by another party. "
        "Agents skip it."
    ),
    FindingCode.EXPIRED_FOR_AGENTS: (
        "From here on, items have expired for agents. They stay in the store until they are purged."
    ),
    FindingCode.COMPACTION: (
        "The block may contain text from before this point. It cannot be inspected, or erased in part."
    ),
    FindingCode.OUT_OF_ORDER: (
        "Its row is older than the row before it, its time is later: a writer in another time zone, or two runs at "
        "once. The agent reads the session in this order too."
    ),
}


OF_SEALS = {
    SealState.NO_KEY: FindingCode.NO_KEY,
    SealState.KEY_DESTROYED: FindingCode.KEY_DESTROYED,
    SealState.WRONG_KEY: FindingCode.WRONG_KEY,
    SealState.OTHER_KEY: FindingCode.OTHER_KEY,
    SealState.TAMPERED: FindingCode.TAMPERED,
}


@dataclass(frozen=True, slots=True)
class SeenItem:
    """The part of a past item that is kept."""

    id: str
    position: Position


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, at one item."""

    code: FindingCode
    item: SeenItem
    sentence: str

    @property
    def title(self) -> str:
        return TITLES[self.code]


def finding(code: FindingCode, item: StoredItem | SeenItem, **words: str) -> Finding:
    return Finding(code, SeenItem(item.id, item.position), SENTENCES[code].format(**words))


@dataclass(frozen=True, slots=True)
class Inspection:
    """Result of reading a session."""

    findings: tuple[Finding, ...]
    """Findings in the order of their items."""
    is_encrypted: bool
    """Whether any item is encrypted."""
    has_plain_items: bool
    """Whether any item is not encrypted."""
    agents: tuple[str, ...]
    """Names of agents that received a handoff, in order of appearance; at most AGENTS_KEPT."""

    @property
    def last_agent(self) -> str:
        return self.agents[-1] if self.agents else ""


@dataclass(frozen=True, slots=True)
class OpenCall:
    item: SeenItem
    run: int
    family: str
    is_handoff: bool

    def left_open(self, last_run: int) -> FindingCode:
        """Finding for a session that ends without an answer to this call."""
        is_request = self.family == "mcp_approval"
        may_wait = self.family in APPROVABLE and not self.is_handoff
        if is_request or (may_wait and self.run == last_run):
            return FindingCode.APPROVAL_OPEN
        return FindingCode.CALL_WITHOUT_OUTPUT


class Inspector:
    """Reads a session once, oldest item first. Memory grows with open calls and findings only."""

    def __init__(self, *, starts_session: bool = True) -> None:
        self._starts_session = starts_session
        self._findings: list[Finding] = []
        self._agents: list[str] = []
        self._calls: OpenCalls[OpenCall] = OpenCalls()
        self._run = 0
        self._previous: StoredItem | None = None
        self._unanswered: StoredItem | None = None
        """Last user text, as long as only input has followed it."""
        self._is_encrypted = False
        self._has_plaintext = False
        self._follows_envelope = False
        self._seal_before: Seal | None = None

    def feed(self, items: Iterable[StoredItem]) -> None:
        """Reads the next items, in the agent's order, in batches of any size."""
        for item in items:
            self.see(decode(item))

    def see(self, entry: DecodedItem) -> None:
        """Reads one item that was decoded already."""
        self._findings += [
            *self._decoding(entry),
            *self._order(entry.stored),
            *self._encryption(entry),
            *self._conversation(entry),
            *self._pairing(entry),
        ]
        if entry.type == "compaction":
            self._findings.append(finding(FindingCode.COMPACTION, entry.stored))
        self._previous = entry.stored

    def finish(self, *, ends_session: bool = True) -> Inspection:
        """Complete result. Only the end of a session makes certain which calls stayed open."""
        if ends_session:
            self._findings += [finding(call.left_open(self._run), call.item) for call in self._calls.remaining()]
        self._findings.sort(key=lambda found: found.item.position)
        return Inspection(tuple(self._findings), self._is_encrypted, self._has_plaintext, tuple(self._agents))

    def _decoding(self, entry: DecodedItem) -> list[Finding]:
        found = [finding(FindingCode.UNDECODABLE, entry.stored, problem=entry.problem)] if entry.problem else []
        if entry.stored.has_unreadable_time:
            found.append(finding(FindingCode.UNREADABLE_TIME, entry.stored))
        return found

    def _order(self, item: StoredItem) -> list[Finding]:
        """Reports a falling row id: within one batch the agent reads by row id, so times and ids disagree."""
        before, now = _row_number(self._previous), _row_number(item)
        if before is not None and now is not None and now < before:
            return [finding(FindingCode.OUT_OF_ORDER, item)]
        return []

    def _encryption(self, entry: DecodedItem) -> list[Finding]:
        """Reports each stretch of plain text once, not each of its rows."""
        if entry.problem and entry.stored.seal is None:
            return []
        found = self._seal(entry.stored)
        is_sealed = entry.is_envelope or entry.stored.seal is not None
        if is_sealed:
            if self._starts_session and self._has_plaintext and not self._is_encrypted:
                found.append(finding(FindingCode.PLAINTEXT_BEFORE_ENCRYPTED, entry.stored))
            self._is_encrypted = True
        elif self._follows_envelope:
            found.append(finding(FindingCode.PLAINTEXT_AMONG_ENCRYPTED, entry.stored))
        self._has_plaintext |= not is_sealed
        self._follows_envelope = is_sealed
        return found

    def _seal(self, item: StoredItem) -> list[Finding]:
        """Reports the beginning of a stretch of items with the same seal problem."""
        before, seal = self._seal_before, item.seal
        self._seal_before = seal
        if seal is None:
            return []
        found = []
        if seal.state in OF_SEALS and (before is None or before.state != seal.state):
            found.append(finding(OF_SEALS[seal.state], item))
        if seal.is_expired and not (before and before.is_expired):
            found.append(finding(FindingCode.EXPIRED_FOR_AGENTS, item))
        return found

    def _conversation(self, entry: DecodedItem) -> list[Finding]:
        """Finds the beginnings of runs. User texts of one batch are one input, so they do not answer each other."""
        role = text_in(entry.fields, "role") if entry.type == "message" else ""
        if role not in INPUT_ROLES:
            self._unanswered = None
        if role != "user":
            return []
        before, self._unanswered = self._unanswered, entry.stored
        if before and is_same_batch(before, entry.stored):
            return []
        self._run += 1
        return [finding(FindingCode.UNANSWERED_TEXT, before)] if before else []

    def _pairing(self, entry: DecodedItem) -> list[Finding]:
        call = OpenCall(
            SeenItem(entry.stored.id, entry.stored.position),
            self._run,
            family=call_family(entry),
            is_handoff=is_handoff_call(entry),
        )
        answered = self._calls.see(entry, call)
        if answered and answered.is_handoff:
            self._remember_agent(agent_handed_to(entry))
        key = output_key(entry)
        if key and not answered and self._starts_session:
            return [finding(FindingCode.OUTPUT_WITHOUT_CALL, entry.stored, call=one_line(key[1], 60))]
        return []

    def _remember_agent(self, name: str) -> None:
        if name and name not in self._agents and len(self._agents) < AGENTS_KEPT:
            self._agents.append(name)


def _row_number(item: StoredItem | None) -> int | None:
    return int(item.id) if item and item.id.isdecimal() and len(item.id) <= 20 else None


def is_same_batch(one: StoredItem, other: StoredItem) -> bool:
    """Whether two items were written together; False if the store has no times."""
    return one.written_at is not None and one.written_at == other.written_at
