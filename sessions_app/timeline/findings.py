"""What a person should look at in a session: the rules, fed one item at a time.

The page and the inspection of whole sessions use the same rules. A window that begins or ends in the middle of a
session reports only what no item outside it could explain, so its findings are always findings of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from sessions_app.items import Position, Seal, SealState, StoredItem
from sessions_app.timeline.decode import Entry, decode
from sessions_app.timeline.handoffs import agent_handed_to, is_handoff_call
from sessions_app.timeline.pairing import OpenCalls, call_family, output_key
from sessions_app.timeline.values import one_line, text_in

INPUT_ROLES = frozenset({"user", "system", "developer"})
AGENTS_KEPT = 50

APPROVABLE = frozenset({"function", "custom", "computer", "local_shell", "shell", "apply_patch", "mcp_approval"})
"""Families of calls that the SDK can hold back until a person approves them."""


class FindingCode(StrEnum):
    """Stable words: they are stored, filtered by and scripted against."""

    OUTPUT_WITHOUT_CALL = "output_without_call"
    CALL_WITHOUT_OUTPUT = "call_without_output"
    APPROVAL_OPEN = "approval_open"
    UNANSWERED_TEXT = "unanswered_text"
    UNDECODABLE = "undecodable"
    PLAINTEXT_AMONG_ENCRYPTED = "plaintext_among_encrypted"
    PLAINTEXT_BEFORE_ENCRYPTED = "plaintext_before_encrypted"
    NO_KEY = "no_key"
    WRONG_KEY = "wrong_key"
    OTHER_KEY = "other_key"
    TAMPERED = "tampered"
    EXPIRED_FOR_AGENTS = "expired_for_agents"
    COMPACTION = "compaction"
    OUT_OF_ORDER = "out_of_order"


TITLES = {
    FindingCode.OUTPUT_WITHOUT_CALL: "an output without its call",
    FindingCode.CALL_WITHOUT_OUTPUT: "a call without its output",
    FindingCode.APPROVAL_OPEN: "an approval left open",
    FindingCode.UNANSWERED_TEXT: "user text without an answer",
    FindingCode.UNDECODABLE: "not readable as JSON",
    FindingCode.PLAINTEXT_AMONG_ENCRYPTED: "plain text among encrypted items",
    FindingCode.PLAINTEXT_BEFORE_ENCRYPTED: "plain text before the encrypted items",
    FindingCode.NO_KEY: "sealed, and no key here",
    FindingCode.WRONG_KEY: "sealed with a wrong key",
    FindingCode.OTHER_KEY: "sealed with another key than the store's",
    FindingCode.TAMPERED: "a seal that was tampered with",
    FindingCode.EXPIRED_FOR_AGENTS: "expired for agents, still stored",
    FindingCode.COMPACTION: "compaction may hold erased text",
    FindingCode.OUT_OF_ORDER: "written out of order",
}


def title_of(code: str) -> str:
    """The few words for a stored code; the code itself where another version has written it."""
    return next((title for known, title in TITLES.items() if known == code), code)


SENTENCES = {
    FindingCode.OUTPUT_WITHOUT_CALL: (
        "This output answers {call}, which is not in the history: it was erased, taken back or compacted. "
        "The next run of the agent may fail with “No tool call found”."
    ),
    FindingCode.CALL_WITHOUT_OUTPUT: (
        "No output is stored for this call: its run was stopped. The agent does not see the call again."
    ),
    FindingCode.APPROVAL_OPEN: (
        "Neither an output nor a refusal is stored: the run waits for a person's approval, or was given up."
    ),
    FindingCode.UNANSWERED_TEXT: (
        "The next user text follows without an answer: the run failed, was blocked or cancelled. "
        "The agent reads this text again in every later run."
    ),
    FindingCode.UNDECODABLE: "The stored text cannot be read: {problem}. The agent skips it; nothing was changed.",
    FindingCode.PLAINTEXT_AMONG_ENCRYPTED: (
        "Stored in plain text after encrypted items. An agent that holds the key does not see it."
    ),
    FindingCode.PLAINTEXT_BEFORE_ENCRYPTED: (
        "Encrypted from here on; earlier items are stored in plain text. An agent that holds the key does not see them."
    ),
    FindingCode.NO_KEY: "From here on nothing sealed can be read by this console: it does not hold the key.",
    FindingCode.WRONG_KEY: (
        "From here on the key of the store opens nothing: agents that hold it do not see these items either."
    ),
    FindingCode.OTHER_KEY: (
        "From here on items were sealed with another key of the keyring. Agents that hold the store's do not see them."
    ),
    FindingCode.TAMPERED: (
        "The key of the session does not open this: it was changed, moved here, or sealed by somebody else. Agents skip"
        " it."
    ),
    FindingCode.EXPIRED_FOR_AGENTS: (
        "From here on items are older than agents read. They stay in the store until somebody purges them."
    ),
    FindingCode.COMPACTION: (
        "Text from before this point may live on inside the block, where nobody can read it or erase it alone."
    ),
    FindingCode.OUT_OF_ORDER: (
        "Its row is older than the row before it, its time is later: a writer in another time zone, or two runs at "
        "once. The agent reads the session in this order too."
    ),
}


OF_SEALS = {
    SealState.NO_KEY: FindingCode.NO_KEY,
    SealState.WRONG_KEY: FindingCode.WRONG_KEY,
    SealState.OTHER_KEY: FindingCode.OTHER_KEY,
    SealState.TAMPERED: FindingCode.TAMPERED,
}


@dataclass(frozen=True, slots=True)
class Place:
    """As much of an item as is remembered when it has gone by."""

    id: str
    position: Position


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at, at one item."""

    code: FindingCode
    item: Place
    sentence: str

    @property
    def title(self) -> str:
        return TITLES[self.code]


def finding(code: FindingCode, item: StoredItem | Place, **words: str) -> Finding:
    return Finding(code, Place(item.id, item.position), SENTENCES[code].format(**words))


@dataclass(frozen=True, slots=True)
class Inspection:
    """What reading a session through has shown."""

    findings: tuple[Finding, ...]
    """In the order of their items."""
    is_encrypted: bool
    agents: tuple[str, ...]
    """Names of agents that a handoff went to, in order of appearance; at most AGENTS_KEPT."""

    @property
    def last_agent(self) -> str:
        return self.agents[-1] if self.agents else ""


@dataclass(frozen=True, slots=True)
class OpenCall:
    item: Place
    run: int
    family: str
    is_handoff: bool

    def left_open(self, last_run: int) -> FindingCode:
        """What it means that the session ends and nothing has answered this call."""
        is_request = self.family == "mcp_approval"
        may_wait = self.family in APPROVABLE and not self.is_handoff
        if is_request or (may_wait and self.run == last_run):
            return FindingCode.APPROVAL_OPEN
        return FindingCode.CALL_WITHOUT_OUTPUT


class Inspector:
    """Reads a session once, oldest item first, in memory of its open calls and findings, however long it is."""

    def __init__(self, *, starts_session: bool = True) -> None:
        self._starts_session = starts_session
        self._findings: list[Finding] = []
        self._agents: list[str] = []
        self._calls: OpenCalls[OpenCall] = OpenCalls()
        self._run = 0
        self._previous: StoredItem | None = None
        self._unanswered: StoredItem | None = None
        """The last user text, while only input has followed it."""
        self._is_encrypted = False
        self._has_plaintext = False
        self._follows_envelope = False
        self._seal_before: Seal | None = None

    def feed(self, items: Iterable[StoredItem]) -> None:
        """The next items, in the agent's order, in batches of any size."""
        for item in items:
            self.see(decode(item))

    def see(self, entry: Entry) -> None:
        """`feed` for an item that was decoded already."""
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
        """The whole result: only the end of a session makes certain which calls stayed open."""
        if ends_session:
            self._findings += [finding(call.left_open(self._run), call.item) for call in self._calls.remaining()]
        self._findings.sort(key=lambda found: found.item.position)
        return Inspection(tuple(self._findings), self._is_encrypted, tuple(self._agents))

    def _decoding(self, entry: Entry) -> list[Finding]:
        return [finding(FindingCode.UNDECODABLE, entry.stored, problem=entry.problem)] if entry.problem else []

    def _order(self, item: StoredItem) -> list[Finding]:
        """Within one batch the agent reads by row id; so a row id that falls means that times and ids disagree."""
        before, now = _row_number(self._previous), _row_number(item)
        if before is not None and now is not None and now < before:
            return [finding(FindingCode.OUT_OF_ORDER, item)]
        return []

    def _encryption(self, entry: Entry) -> list[Finding]:
        """One finding for each stretch of plain text, not one for each of its rows."""
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
        """One finding where a stretch begins of which the same is the matter."""
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

    def _conversation(self, entry: Entry) -> list[Finding]:
        """Follows where runs begin. User texts of one batch are one input, so they do not answer each other."""
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

    def _pairing(self, entry: Entry) -> list[Finding]:
        call = OpenCall(
            Place(entry.stored.id, entry.stored.position),
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
    """Whether two items were written together; unknown, so no, where the store keeps no times."""
    return one.written_at is not None and one.written_at == other.written_at
