#!/usr/bin/env python3
"""Stand-alone verifier of memadmin audit logs: checks a log without memadmin and names each kind of manipulation.

    python verifier.py export.jsonl --anchors anchor.jsonl --key NAME+HASH+KEY
    python verifier.py event.json --anchors anchor.jsonl --key NAME+HASH+KEY
    python verifier.py --receipt receipt.json --anchors anchor.jsonl --key NAME+HASH+KEY
    python verifier.py --dsn postgresql://auditor@host/database --anchors anchor.jsonl

The first form reads a whole log or a selection of events, the second the proof of one event, the third the receipt of a
request such as an erasure, the fourth a database, in one read-only transaction. `--anchors` (may be repeated) names
files with checkpoints that were stored elsewhere: JSON Lines as memadmin's file anchor writes them, single notes, or a
folder of notes such as a copy of a bucket; without anchors, a log that was rewritten and signed again looks valid.
`--key` pins the key that must have signed, directly or by signing in its successor; checkpoints of other keys are
ignored in anchors, and reported in a log. A receipt needs it: anyone could sign one with a key of their own.

Needs Python 3.11 with the package `cryptography`, and `psycopg` for a database. This single file uses no code of
memadmin: its results do not depend on the program that wrote the log. Text from the input is printed with escapes.

Exit status, by verdict:
    0  ok          every event is signed, nothing contradicts the log, and an anchor confirms it
    0  unanchored  the same without an anchor that confirms it
    1  broken      the log differs from its signed checkpoints or anchors, or its file from the format
    2              the input cannot be read
    3  unsigned    nothing contradicts the signed events; others have no valid signature and may be invented
    4  epoch       after a restore the log continued from an older state, according to its signed record

In a file every event without a signature counts. In a database the newest ones are no finding while checkpoints are
recent: one is signed every minute.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import math
import re
import sys
import time
import traceback
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from heapq import merge
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from typing import IO, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LOG_FORMAT = "memadmin-audit-log/1"
EVENT_FORMAT = "memadmin-audit-event/1"
CONSISTENCY_FORMAT = "memadmin-audit-consistency/1"
RECEIPT_FORMAT = "memadmin-receipt/1"
RECEIPT_CONTEXT = RECEIPT_FORMAT.encode() + b"\x00"
"""Prefix of the signed bytes of a receipt. The bytes after it contain no line break, and a checkpoint has several: no
signature is valid for both.
"""

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
CLOCK_TOLERANCE = timedelta(seconds=5)
"""A connection may be delayed between taking its number and reading the clock."""
READERS_TOLERANCE = timedelta(days=1)
"""The clock of the reader is another one than that of the log, and either may be wrong."""
BACKLOG_SECONDS = 10
LONGEST_UNSIGNED = timedelta(minutes=3)
"""Age up to which events of a database may be without a checkpoint; one is signed every minute."""
MOST_FINDINGS = 1000
MOST_HOLES = 100_000
SORTED = 500_000
MOST_TRIALS = 2_000_000
"""Maximum of hashes to explain one damaged part of the log: some seconds."""
MOST_LINE = 16 * 2**20
"""Bytes of the longest line that is read; an event has up to some 50,000, its details up to a few millions."""
MOST_EXPANSION = 100
"""Ratio up to which a file may be compressed. Exports are full of random hashes and reach 10."""
MOST_NOTE = 64 * 1024
MOST_RECEIPT = 2**20
"""Bytes of the largest receipt that is read."""
MOST_TEXT = 2000
"""Characters of a finding or a note."""

EXIT_STATUS = {"ok": 0, "unanchored": 0, "broken": 1, "unsigned": 3, "epoch": 4}
CANNOT_READ = 2

KINDS = {
    "edited_body": "an event was changed after it got its index",
    "edited_leaf": "the hash of an event was changed after it was signed",
    "edited_details": "the details of an event do not match its commitment",
    "deletion": "events were removed from the middle",
    "cut_tail": "the end of the log is missing",
    "insertion": "events were inserted afterwards",
    "reordering": "events are in another order",
    "duplicate": "an event or leaf exists twice",
    "forged_index": "an event has the index of another one",
    "clock_step_back": "the clock went backwards",
    "impossible_time": "the time of an event or a checkpoint contradicts another one, or is in the future",
    "rewrite": "the log was rewritten and signed again",
    "restored_backup": "an older state of the log was restored",
    "backlog": "events wait for an index",
    "forged_checkpoint": "a checkpoint differs from the signed one",
    "unknown_key": "a checkpoint is signed by an untrusted key",
    "damaged_node": "an inner hash of the stored tree is wrong",
    "bad_proof": "the event is not in the signed log",
    "incomplete_file": "the file ends early, or its counts do not match its lines",
    "unreadable": "a part is not in the format of a log",
    "deleted_details": "the details of an event were removed without an event of their erasure",
    "renamed_actor": "an actor has another name than the one that its id is derived from or an event commits to",
    "deleted_actor": "the name of a person was removed without an event of it",
    "cut_anchor": "an anchor lost checkpoints that were stored there",
    "forged_receipt": "the receipt differs from the signed one",
    "other_event": "the event in the receipt belongs to another receipt",
    "other_log": "the receipt belongs to another log",
    "unsigned": "events have no valid signature",
    "epoch": "after a restore the log continued from an older state, according to its signed record",
}


class CannotRead(Exception):
    """The input is not a log; the message is a sentence."""


def printable(text: object) -> str:
    """ASCII text with escapes: input may contain control characters that rewrite a terminal."""
    return str(text)[:MOST_TEXT].encode("unicode_escape").decode("ascii")


@dataclass(frozen=True)
class LogFinding:
    kind: str
    event: str | None
    """The id of the event, if known."""
    detail: str

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "event": self.event, "detail": self.detail}


@dataclass
class Report:
    """Result of a verification. Texts are printable ASCII."""

    size: int = 0
    root: str = ""
    findings: list[LogFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Information that contradicts nothing."""
    anchored_size: int = 0
    """The largest size whose root an anchor confirmed."""
    signed: int = 0
    """Number of events that a known key signed; of a log, the first ones."""
    signed_by: str = ""
    """The key that signed them."""
    unsigned: int = 0
    """Number of events without such a signature."""
    is_selection: bool = False
    more: int = 0
    """Findings that are not listed."""
    kinds: set[str] = field(default_factory=set)
    """Kinds of all findings, listed or not."""

    @property
    def verdict(self) -> str:
        if self.kinds - {"unsigned", "epoch"}:
            return "broken"
        for verdict in ("unsigned", "epoch"):
            if verdict in self.kinds:
                return verdict
        return "ok" if self.anchored_size else "unanchored"

    def add(self, kind: str, detail: str, event: object = None) -> None:
        assert kind in KINDS
        self.kinds.add(kind)
        if len(self.findings) >= MOST_FINDINGS:
            self.more += 1
            return
        self.findings.append(LogFinding(kind, None if event is None else printable(event), printable(detail)))

    def remark(self, note: str) -> None:
        self.notes.append(printable(note))

    def add_unsigned(self, *, is_recent: bool = False) -> None:
        """Reports the events without a signature, unless the log is broken anyway or they are recent."""
        if not self.unsigned or self.kinds - {"unsigned", "epoch"}:
            return
        total = self.signed + self.unsigned
        if is_recent:
            self.remark(f"{self.unsigned:,} new events are not signed yet; a checkpoint is signed every minute.")
        else:
            self.add("unsigned", f"{self.unsigned:,} of {total:,} events have no valid signature.")

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "size": self.size,
            "root": self.root,
            "signed": self.signed,
            "signed_by": self.signed_by,
            "unsigned": self.unsigned,
            "findings": [finding.as_json() for finding in self.findings],
            "findings_not_listed": self.more,
            "anchored_size": self.anchored_size,
            "notes": self.notes,
        }


# Hashes and trees (RFC 9162, 2.1)


def canonical(event: dict[str, Any]) -> bytes:
    """Canonical JSON (RFC 8785) for the values of events: strings, integers and ASCII keys."""
    return json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def leaf_hash(event: dict[str, Any]) -> bytes:
    try:
        return sha256(b"\x00" + canonical(event)).digest()
    except UnicodeEncodeError:  # a lone surrogate, which no valid event contains
        return bytes(32)


class Tree:
    """The right edge of a growing tree: the hash of a complete subtree for each set bit of its size."""

    __slots__ = ("edge", "size")

    def __init__(self, size: int = 0, edge: Sequence[tuple[int, bytes]] = ()) -> None:
        self.size = size
        self.edge = list(edge)

    def copy(self) -> Tree:
        return Tree(self.size, self.edge)

    def extend(self, hashes: bytes | bytearray | memoryview) -> Tree:
        """Appends leaf hashes, 32 bytes each."""
        edge, size = self.edge, self.size
        for start in range(0, len(hashes), 32):
            digest = bytes(hashes[start : start + 32])
            level, rest = 0, size
            while rest & 1:
                digest = sha256(b"\x01" + edge.pop()[1] + digest).digest()
                rest >>= 1
                level += 1
            edge.append((level, digest))
            size += 1
        self.size = size
        return self

    def root(self) -> bytes:
        if not self.edge:
            return sha256(b"").digest()
        digest = self.edge[-1][1]
        for _, left in reversed(self.edge[:-1]):
            digest = sha256(b"\x01" + left + digest).digest()
        return digest


def root_by_inclusion(index: int, size: int, leaf: bytes, path: Sequence[bytes]) -> bytes | None:
    """The root of the path (2.1.3.2); None when the path does not fit the index."""
    if not 0 <= index < size:
        return None
    position, last, digest = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if position % 2 == 1 or position == last:
            digest = sha256(b"\x01" + sibling + digest).digest()
            while position % 2 == 0 and position:
                position, last = position >> 1, last >> 1
        else:
            digest = sha256(b"\x01" + digest + sibling).digest()
        position, last = position >> 1, last >> 1
    return digest if last == 0 else None


def consistency_holds(old_size: int, old_root: bytes, size: int, root: bytes, path: Sequence[bytes]) -> bool:
    """Whether a consistency proof holds (2.1.4.2)."""
    if not 0 < old_size <= size:
        return False
    if old_size == size:
        return old_root == root and not path
    steps = list(path)
    if old_size & (old_size - 1) == 0:
        steps.insert(0, old_root)
    if not steps:
        return False
    position, last = old_size - 1, size - 1
    while position % 2 == 1:
        position, last = position >> 1, last >> 1
    old = new = steps[0]
    for sibling in steps[1:]:
        if last == 0:
            return False
        if position % 2 == 1 or position == last:
            old = sha256(b"\x01" + sibling + old).digest()
            new = sha256(b"\x01" + sibling + new).digest()
            while position % 2 == 0 and position:
                position, last = position >> 1, last >> 1
        else:
            new = sha256(b"\x01" + new + sibling).digest()
        position, last = position >> 1, last >> 1
    return last == 0 and old == old_root and new == root


# Signed notes (C2SP signed-note and tlog-checkpoint)


class InvalidCheckpointNote(Exception):
    """A text is not a signed checkpoint."""


def decoded(text: str) -> bytes:
    """Bytes of base64 text. Strict: exactly one text for each value."""
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError as problem:
        raise InvalidCheckpointNote("it contains invalid base64") from problem
    if base64.b64encode(data).decode() != text:
        raise InvalidCheckpointNote("it contains invalid base64")
    return data


@dataclass(frozen=True)
class Key:
    name: str
    data: bytes

    @classmethod
    def parse(cls, text: str) -> Key:
        name, _, rest = text.partition("+")
        hint, _, encoded = rest.partition("+")
        data = decoded(encoded)
        if len(data) != 33 or data[0] != 1 or cls(name, data[1:]).hint.hex() != hint:
            raise InvalidCheckpointNote(f"{text[:200]!r} is not a public key in the note format")
        return cls(name, data[1:])

    @property
    def hint(self) -> bytes:
        return sha256(self.name.encode() + b"\n\x01" + self.data).digest()[:4]

    def has_signed(self, data: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(self.data).verify(signature, data)
        except (InvalidSignature, ValueError):
            return False
        return True

    def __str__(self) -> str:
        encoded = base64.b64encode(b"\x01" + self.data).decode()
        return f"{self.name}+{self.hint.hex()}+{encoded}"


@dataclass(frozen=True)
class SignedCheckpoint:
    """A note that is signed by the key named in it."""

    origin: str
    size: int
    root: bytes
    at: datetime
    epoch: int
    key: Key
    replaced: tuple[int, bytes] | None
    text: str
    signatures: tuple[tuple[str, bytes, bytes], ...]

    @classmethod
    def parse(cls, note: str, *, is_checked: bool = True) -> SignedCheckpoint:
        """Raises InvalidCheckpointNote. Unless `is_checked`, the caller verifies the signature, the slowest part."""
        text, gap, tail = note.rpartition("\n\n")
        if not gap or not tail.endswith("\n"):
            raise InvalidCheckpointNote("it has no signatures")
        lines = text.split("\n")
        signatures = []
        for line in tail[:-1].split("\n"):
            dash, name, encoded = ([*line.split(" "), "", ""])[:3]
            data = decoded(encoded)
            if dash != "\N{EM DASH}" or not name or len(data) < 5:
                raise InvalidCheckpointNote("a signature is not in the note format")
            signatures.append((name, data[:4], data[4:]))
        values = dict(line.partition(" ")[::2] for line in lines[3:])
        try:
            replaced_size, _, replaced_root = values.get("replaces", "").partition(" ")
            found = cls(
                origin=lines[0],
                size=int(lines[1]),
                root=decoded(lines[2]),
                at=datetime.strptime(values["at"], TIME),  # noqa: DTZ007  # all are UTC, and compared with each other
                epoch=int(values["epoch"]),
                key=Key.parse(values["key"]),
                replaced=(int(replaced_size), decoded(replaced_root)) if replaced_size else None,
                text=text + "\n",
                signatures=tuple(signatures),
            )
        except (IndexError, KeyError, ValueError) as problem:
            raise InvalidCheckpointNote("it has no origin, size, root, time, epoch or key") from problem
        if not 0 <= found.size < 2**63 or len(found.root) != 32:
            raise InvalidCheckpointNote("its size or root is invalid")
        if is_checked and not found.is_signed_by(found.key):
            raise InvalidCheckpointNote("it is not signed by the key named in it")
        return found

    @property
    def instant(self) -> int:
        """Its time, in microseconds since 1970."""
        return microseconds(self.at.replace(tzinfo=UTC) - BEGINNING)

    @property
    def position(self) -> tuple[int, int]:
        """Epoch and size: the order of the checkpoints of a log."""
        return self.epoch, self.size

    def is_signed_by(self, key: Key) -> bool:
        text = self.text.encode()
        return any(
            (name, hint) == (key.name, key.hint) and key.has_signed(text, signature)
            for name, hint, signature in self.signatures
        )


def cosigners(found: SignedCheckpoint, keys: Iterable[bytes]) -> set[bytes]:
    """Those of the keys that signed a checkpoint, under any name: one key may sign several logs."""
    names = {name for name, _, _ in found.signatures}
    return {data for data in keys for name in names if found.is_signed_by(Key(name, data))}


def vouched_for(
    own: Sequence[SignedCheckpoint], anchors: Iterable[SignedCheckpoint], pinned: Sequence[Key]
) -> dict[bytes, tuple[float, float]]:
    """The known keys, each with the position up to which its checkpoints count.

    These are the pinned keys, and keys named in a checkpoint that a known key signed, too. The other signers of a
    checkpoint are not named in its text, and anyone can add a signature. So a predecessor is known only from the log
    itself, and up to that checkpoint: it covers the same events.
    """
    known = dict.fromkeys((key.data for key in pinned), EVERYWHERE)
    handovers = [found for found in chain(own, anchors) if len(found.signatures) > 1]
    grows = True
    while grows:
        unknown = [found for found in handovers if found.key.data not in known and found.is_signed_by(found.key)]
        fresh = {found.key.data for found in unknown if cosigners(found, known)}
        known |= dict.fromkeys(fresh, EVERYWHERE)
        grows = bool(fresh)
    former = {found.key.data for found in own} - known.keys()
    for found in sorted(own, key=lambda each: each.position, reverse=True):
        is_known = len(found.signatures) > 1 and found.position <= known.get(found.key.data, NOWHERE)
        if is_known and found.is_signed_by(found.key):
            for data in cosigners(found, former):
                known.setdefault(data, found.position)
    return known


EVERYWHERE = (math.inf, math.inf)
NOWHERE = (-math.inf, -math.inf)


# Strict JSON, and the shape of records


def strict_json(text: str | bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises ValueError or RecursionError.

    Refuses text that two readers could understand differently: a key that occurs twice, NaN, infinite numbers, lone
    surrogates.
    """
    text = (text if isinstance(text, bytes) else text.encode()).decode()
    value = STRICT.decode(text)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


STRICT = json.JSONDecoder(object_pairs_hook=_object, parse_float=_finite, parse_constant=_refuse_constant)

HASH = re.compile(r"[0-9a-f]{64}")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)

EVENT_KEYS = frozenset(
    {"v", "number", "id", "type", "at", "actor_kind", "actor", "role", "object_kind", "object", "subject", "shown"}
    | {"outcome", "reason", "counters", "cause", "commitment"}
)
RECORDS: dict[str, tuple[Set[str], Set[str]]] = {
    "index": ({"index", "leaf", "number", "event"}, {"details"}),
    "checkpoint": ({"checkpoint"}, set()),
    "waiting": ({"waiting", "event"}, {"details"}),
    "anchored": ({"anchored"}, set()),
    "end": ({"end"}, set()),
}
"""Kinds of the lines of an export by their first key: all keys, and those that may be absent."""


def keyed(value: object, required: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    """An object with exactly these keys. Raises ValueError."""
    if type(value) is not dict:
        raise ValueError("an object is missing")
    if not required <= value.keys() <= required | optional:
        raise ValueError("a key is missing or unknown")
    return value


def text_of(value: object) -> str:
    if type(value) is not str:
        raise ValueError("a text is missing")
    return value


def whole_number(value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError("a number is not an integer of 64 bits")
    return value


def hash_of(text: object) -> bytes:
    if not HASH.fullmatch(text_of(text)):
        raise ValueError("a hash has 64 digits")
    return bytes.fromhex(text_of(text))


def instant_of(text: object) -> int:
    """Microseconds since 1970."""
    if not INSTANT.fullmatch(text_of(text)):
        raise ValueError("a time is not in UTC with microseconds")
    return microseconds(datetime.fromisoformat(text_of(text)) - BEGINNING)


def microseconds(length: timedelta) -> int:
    return length // timedelta(microseconds=1)


def stated(instant: int) -> str:
    return (BEGINNING + timedelta(microseconds=instant)).strftime(TIME)


def readers_limit() -> int:
    """The latest time that is not in the future, by the reader's clock."""
    return microseconds(datetime.now(UTC) + READERS_TOLERANCE - BEGINNING)


BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
UNKNOWN_FUTURE = 2**63 - 1
"""Stands for a time after the year 9999."""


def checked_event(value: object) -> dict[str, Any]:
    """An event in the shape of version 1. Raises ValueError."""
    event = keyed(value, EVENT_KEYS)
    ids = [event["id"], event["actor"], event["role"]]
    ids += [event[key] for key in ("object", "subject", "cause") if event[key] is not None]
    words = [event[key] for key in ("type", "actor_kind", "outcome", "reason")]
    words += [event["object_kind"]] if event["object_kind"] is not None else []
    shown, counters = event["shown"], event["counters"]
    if type(event["v"]) is not int or event["v"] != 1:
        raise ValueError("an event has an unknown version")
    if type(shown) is not list or type(counters) is not dict:
        raise ValueError("an event has no list of ids or no counters")
    if not all(type(id_) is str and UUID.fullmatch(id_) for id_ in [*ids, *shown]):
        raise ValueError("an id is not a UUID")
    if not all(type(word) is str for word in words):
        raise ValueError("a text is missing")
    for number in (event["number"], *counters.values()):
        whole_number(number)
    instant_of(event["at"])
    if event["commitment"] is not None:
        hash_of(event["commitment"])
    return event


def checked_details(record: dict[str, Any]) -> dict[str, Any] | None:
    """The details of a record, None if it has none. Raises ValueError."""
    if "details" not in record:
        return None
    details = keyed(record["details"], {"salt", "text"})
    text_of(details["text"])
    hash_of(details["salt"])
    return details


def details_match(event: dict[str, Any], details: dict[str, Any]) -> bool:
    """Whether details are those that the event commits to."""
    found = sha256(bytes.fromhex(details["salt"]) + details["text"].encode()).hexdigest()
    return bool(found == event["commitment"])


# Content of a log


@dataclass
class Log:
    """A log as read, before comparison. About 60 bytes an event."""

    origin: str = ""
    leaves: bytearray = field(default_factory=bytearray)
    """Stored hashes by index; zeros where an index is empty."""
    numbers: array[int] = field(default_factory=lambda: array("q"))
    """The number of the event at each index; -1 where it is empty."""
    ids: array[int] = field(default_factory=lambda: array("Q"))
    """The random half of each event's id; 0 where there is no event."""
    times: array[int] = field(default_factory=lambda: array("q"))
    """The time of each event, in microseconds since 1970; 0 where there is no event."""
    limit: int = field(default_factory=readers_limit)
    """The latest time that is not in the future, in the same unit."""
    future: dict[int, str] = field(default_factory=dict)
    """Ids of the events after it, by index."""
    holes: set[int] = field(default_factory=set)
    strays: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Leaves at far, negative or occupied indexes: index, event number, hash."""
    turns: list[int] = field(default_factory=list)
    """Indexes read out of order, in reading order: those that were read too early, and the skipped ones."""
    differing: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    """Indexes whose event has another hash: that hash, and the event's id."""
    unplaced: list[Unplaced] = field(default_factory=list)
    notes: list[tuple[int, str, str]] = field(default_factory=list)
    """Checkpoints: size and root as stored beside the note, the note."""
    nodes: list[tuple[int, int, str]] = field(default_factory=list)
    """Stored inner hashes: level, index, hash."""
    has_nodes: bool = False
    waiting: int = 0
    """Number of events without a leaf; `unplaced` may have fewer of them."""
    stored: dict[str, int] = field(default_factory=dict)
    """Anchors according to the log: the size of the last checkpoint at each."""

    @property
    def size(self) -> int:
        return len(self.numbers)

    def add_empty(self) -> None:
        """Adds an empty index."""
        self.leaves += bytes(32)
        self.numbers.append(-1)
        self.ids.append(0)
        self.times.append(0)

    def remove(self, first: int, count: int) -> None:
        """Removes indexes; later ones move down."""
        del self.leaves[32 * first : 32 * (first + count)]
        for column in (self.numbers, self.ids, self.times):
            del column[first : first + count]

    def insert(self, index: int, event: Unplaced) -> None:
        """Adds an event at an index; later ones move up."""
        self.leaves[32 * index : 32 * index] = event.hash
        self.numbers.insert(index, event.number)
        self.ids.insert(index, 0)
        self.times.insert(index, 0)


@dataclass(frozen=True)
class Unplaced:
    """An event without a leaf."""

    number: int
    id: str
    hash: bytes
    is_pending: bool
    waited: float
    """Seconds for which it was observed without an index."""


@dataclass
class MissingDetails:
    """An event without its details."""

    number: int
    place: int
    """Position among the events that were read."""
    accounts: Set[str]
    """Those that it is about; its details go with any of them."""


class Erasures:
    """The events whose details are missing, and the events that explain it.

    Details go with an event `details.erased` that names their event, or with an account (`user.row_deleted`), which it
    names, or with the name of a person (`name.erased`). The last names the actor only, and nothing connects it with the
    account any more: each explains the missing details of one account. An explanation has succeeded, and follows what
    it explains, by its index and by its number.
    """

    def __init__(self) -> None:
        self.missing: dict[str, MissingDetails] = {}
        """Those that nothing explains, by id."""
        self._by_account: dict[str, list[str]] = {}
        self._names: list[tuple[int, int]] = []
        """Place and number of each event of an erased name."""
        self._places = 0
        self._explained = 0

    def read(self, event: dict[str, Any], *, is_missing: bool) -> None:
        kind, shown, number = event["type"], event["shown"], event["number"]
        self._places += 1
        if is_missing:
            accounts = {event["object"]} if event["object_kind"] == "auth.user" else set()
            accounts |= set(shown) if kind.startswith("user.row_") else set()
            self.missing[event["id"]] = MissingDetails(number, self._places, accounts)
            for account in accounts:
                self._by_account.setdefault(account, []).append(event["id"])
        if event["outcome"] != "succeeded":
            return
        if kind == "details.erased":
            self._explain(shown, number)
        elif kind == "name.erased" and event["object_kind"] == "audit.auditactor":
            self._names.append((self._places, number))
        elif kind == "user.row_deleted" and event["object_kind"] in ("auth.user", None):
            for account in [event["object"]] if event["object"] else shown:
                self._explain(self._by_account.get(account, ()), number)

    def _explain(self, ids: Iterable[str], number: int) -> None:
        for id_ in ids:
            found = self.missing.get(id_)
            if found and found.number < number:
                del self.missing[id_]
                self._explained += 1

    def conclude(self, report: Report) -> None:
        if self._is_explained_by_names():
            left = {id_: found for id_, found in self.missing.items() if not found.accounts}
            self._explained += len(self.missing) - len(left)
            self.missing = left
        for id_ in self.missing:
            report.add("deleted_details", "The details were removed, and no later event of an erasure names them.", id_)
        if self._explained:
            report.remark(f"Details of {self._explained:,} events were erased.")

    def _is_explained_by_names(self) -> bool:
        """Whether a later name was erased for each account whose details are missing."""
        left = sorted((found for found in self.missing.values() if found.accounts), key=lambda each: len(each.accounts))
        last: dict[str, tuple[int, int]] = {}
        for found in left:
            # Details of several accounts went with one of them, probably one that is known already.
            account = min(found.accounts & last.keys() or found.accounts, key=self._rarity)
            place, number = last.get(account, (0, 0))
            last[account] = max(place, found.place), max(number, found.number)
        pairs = zip(sorted(last.values(), reverse=True), sorted(self._names, reverse=True), strict=False)
        return len(last) <= len(self._names) and all(
            name[0] > place and name[1] > number for (place, number), name in pairs
        )

    def _rarity(self, account: str) -> tuple[int, str]:
        return -len(self._by_account[account]), account


class NamesOfPeople:
    """What events state about the names of people. An erased name never comes back: its person gets another id.

    NamesOfPeople are written by the log's own functions, as an actor that nobody else can prove to be.
    """

    WRITER = b"actor.system:audit log"

    def __init__(self) -> None:
        self.committed: dict[str, tuple[int, list[str]]] = {}
        """By person, number and commitment of the newest event of a name, by number. The commitment is two ids."""
        self.erased: set[str] = set()
        self.older: dict[str, str] = {}
        """People who had a name before events committed to names, and the time since when one does."""

    def read(self, event: dict[str, Any]) -> None:
        if event["object_kind"] != "audit.auditactor" or event["outcome"] != "succeeded":
            return
        person, number, kind = event["object"], event["number"], event["type"]
        is_ours = event["actor_kind"] == "system" and event["actor"] == derived_id(self.WRITER)
        if kind == "name.erased" or (kind == "actor.forgotten" and is_ours):
            self.erased.add(person)
        elif kind == "actor.named" and is_ours:
            if number > self.committed.get(person, (0, []))[0]:
                self.committed[person] = number, event["shown"]
            if event["reason"] == "older_name":
                self.older[person] = event["at"]

    def compare(self, actors: Iterable[tuple[str, str, str, int | None, str | None]], report: Report) -> None:
        """Compares the names of actors: those of people with events, others with the ids that are derived from them.

        A finding contains no name of a person: it is stored, and names are erased.
        """
        people, accounts = set[str](), set[int]()
        for ref, kind, label, account, salt in actors:
            if kind != "person" or account is None:
                if ref != derived_id(f"actor.{kind}:{label}".encode()):
                    problem = f"The actor {ref} is called {label!r}, and its id is not that of this name."
                    report.add("renamed_actor", problem)
                continue
            found = sha256(bytes.fromhex(salt or "") + f"{account}:{label}".encode()).hexdigest()
            if ref not in self.committed:
                report.add("renamed_actor", f"The name of the person {ref} was inserted: no event commits to it.")
            elif sorted(half.replace("-", "") for half in self.committed[ref][1]) != sorted((found[:32], found[32:])):
                report.add("renamed_actor", f"The name or the account of the person {ref} was changed after its event.")
            if ref in people or account in accounts:
                report.add("renamed_actor", f"The person {ref} or the account {account} has several names.")
            people.add(ref)
            accounts.add(account)
        for ref in sorted(self.committed.keys() - people - self.erased):
            report.add("deleted_actor", f"The name of the person {ref} was removed without an event that states it.")
        if older := [at for ref, at in self.older.items() if ref in people]:
            report.remark(
                f"The names of {len(older):,} people are bound by events since {max(older)}: an earlier exchange does"
                " not show."
            )


class LogReader:
    """Reads the records of a log one by one, and checks each on its own."""

    def __init__(self, report: Report, *, has_details: bool) -> None:
        self.log = Log()
        self.report = report
        self.has_details = has_details
        """Whether the details that exist are given."""
        self.erasures = Erasures()
        self.names = NamesOfPeople()
        self._expected = 0
        self._highest = (-1, 0)
        self._latest = 0

    def leaf(
        self,
        index: int,
        number: int,
        digest: bytes,
        event: dict[str, Any] | None,
        details: dict[str, Any] | None = None,
    ) -> None:
        log = self.log
        if event is not None:
            self.names.read(event)
            self.details(event, details)
        if index in log.holes:
            log.holes.remove(index)
            log.turns.append(index)
        elif index != self._expected and not self._is_possible(index, number, digest):
            return
        if index == self._expected:
            log.add_empty()
            self._expected += 1
        log.leaves[32 * index : 32 * index + 32] = digest
        log.numbers[index] = number
        if event is None:
            self.report.add("deletion", f"Event number {number} is missing; its leaf at {index} still exists.")
            return
        self._event(index, number, digest, event)

    def unplaced(
        self, event: dict[str, Any], *, is_pending: bool, waited: float, details: dict[str, Any] | None = None
    ) -> None:
        self.log.unplaced.append(Unplaced(event["number"], event["id"], leaf_hash(event), is_pending, waited))
        self.log.waiting += 1
        if self._instant(event) > self.log.limit:
            self.report.add("impossible_time", f"The event has the time {event['at']}, in the future.", event["id"])
        self.names.read(event)
        self.details(event, details)

    def details(self, event: dict[str, Any], details: dict[str, Any] | None) -> None:
        """Compares the details of an event with its commitment."""
        if not self.has_details:
            return
        self.erasures.read(event, is_missing=details is None and event["commitment"] is not None)
        if details is not None and not details_match(event, details):
            self.report.add("edited_details", "The details do not match the event's commitment.", event["id"])

    def _event(self, index: int, number: int, digest: bytes, event: dict[str, Any]) -> None:
        log, id_ = self.log, str(event["id"])
        log.ids[index] = int(id_[-17:].replace("-", ""), 16)
        at = log.times[index] = self._instant(event)
        found = leaf_hash(event)
        if found != digest or event["number"] != number:
            log.differing[index] = (found, id_)
        if at > log.limit:
            log.future[index] = id_
        else:
            self._compare_times(index, number, at, id_)

    @staticmethod
    def _instant(event: dict[str, Any]) -> int:
        try:
            return instant_of(event["at"])
        except ValueError:  # the database writes years after 9999 with more digits
            return UNKNOWN_FUTURE

    def _compare_times(self, index: int, number: int, at: int, id_: str) -> None:
        """Reports an event that is older than events numbered before it. Small steps add up."""
        highest, highest_at = self._highest
        tolerance = microseconds(CLOCK_TOLERANCE)
        if number <= highest:
            if at - highest_at > tolerance:
                self._add_step_back(index, at, f"but an event numbered after it has {stated(highest_at)}", id_)
            return
        if is_step := self._latest - at > tolerance:
            what = f"but an event numbered before it has the later time {stated(self._latest)}"
            self._add_step_back(index, at, what, id_)
        self._latest = at if is_step else max(self._latest, at)
        self._highest = (number, at)

    def _add_step_back(self, index: int, at: int, what: str, id_: str) -> None:
        self.report.add("clock_step_back", f"The event at {index} has the time {stated(at)}, {what}.", id_)

    def _is_possible(self, index: int, number: int, digest: bytes) -> bool:
        """Whether a leaf can have its stated index, with empty indexes before it."""
        log = self.log
        if index < self._expected:
            log.strays.append((index, number, digest))
            return False
        if index - self._expected + len(log.holes) > MOST_HOLES:
            log.strays.append((index, number, digest))
            return False
        for missing in range(self._expected, index):
            log.holes.add(missing)
            log.add_empty()
        log.turns.append(index)
        self._expected = index
        return True


@dataclass
class Epoch:
    """The beginning of an epoch: after a restore the log continued from an older state."""

    begun: SignedCheckpoint
    size: int
    """The size of the newest checkpoint that was known before, and its root."""
    root: bytes
    before: int
    """The epoch that the restored log was in."""
    lost: list[SignedCheckpoint] = field(default_factory=list)
    """Anchors of the replaced part of the earlier log."""

    def replaces(self, anchor: SignedCheckpoint) -> bool:
        """Whether the anchor is of a part that this log does not continue."""
        return anchor.epoch < self.begun.epoch and (anchor.size >= self.begun.size or anchor.epoch > self.before)


@dataclass(frozen=True)
class AnchorStore:
    """A store of checkpoints that was read completely, so that missing ones are a finding."""

    name: str
    notes: Sequence[str]
    """In the order of the store. What is no note is stated."""
    recorded: Set[int] | None = None
    """Sizes that the log's database recorded as stored there, before it was read; None if an export records it."""
    is_lines: bool = True
    """Whether it was given as JSON Lines, the form of a file anchor, or as single notes, that of the others."""


class Trust:
    """The known keys, and the checkpoints of anchors that they signed.

    Checkpoints of other keys are ignored: else write access to an anchor would be enough to discredit the log.
    """

    def __init__(
        self,
        checkpoints: Sequence[SignedCheckpoint],
        anchors: Iterable[str],
        report: Report,
        *,
        pinned: Sequence[Key],
        named: Sequence[Key],
        positions: Set[tuple[int, int]] | None = None,
    ) -> None:
        """`positions`: those of the anchors that decide a result, if not all; signatures of others are not checked.
        `named`: the keys that are known when none is pinned; if there are none, that of the first anchor."""
        self.by_note: dict[str, SignedCheckpoint] = {}
        # Checking signatures is the slowest part; those of a log's checkpoints have been checked.
        own = set(checkpoints) if positions is None else set()
        unreadable = 0
        for note in anchors:
            try:
                found = SignedCheckpoint.parse(note, is_checked=False)
            except InvalidCheckpointNote:
                found = None
            is_deciding = found is not None and (positions is None or found.position in positions)
            if found is None or (is_deciding and found not in own and not found.is_signed_by(found.key)):
                unreadable += 1
            else:
                self.by_note[note] = found
        if unreadable:
            report.remark(
                f"{unreadable:,} lines or files of the anchors are no signed checkpoints and were ignored: an anchor"
                " contains nothing else, unless a line was left incomplete by a crash."
            )
        every = [*checkpoints, *self.by_note.values()]
        roots = list(pinned) or list(named) or [found.key for found in every[:1]]
        self.keys = vouched_for(checkpoints, self.by_note.values(), roots)
        self.anchors = [found for found in self.by_note.values() if self.knows(found)]
        if roots and not pinned:
            report.remark(f"No key was pinned; the input itself names {roots[0]}.")
        if strangers := len(self.by_note) - len(self.anchors):
            report.remark(f"{strangers:,} of the anchors are not signed by a known key and were ignored.")
        first = next(iter(self.by_note.values()), None)
        if first and not pinned and not self.knows(first):
            # Later notes may be a stranger's; the first one of an append-only anchor is the log's own.
            report.add(
                "unknown_key",
                f"The first anchor is signed by {first.key}, which this log does not name. Pin the key that you trust.",
            )
        self.is_ambiguous = bool(strangers) and not pinned
        """Whether only a pinned key could decide between the signers."""

    def knows(self, found: SignedCheckpoint) -> bool:
        """Whether the key that signed a checkpoint is known."""
        return found.position <= self.keys.get(found.key.data, NOWHERE)


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """Reports an exception in the block: no content of a log may prevent a verdict about it."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as problem:
        last = traceback.format_exception_only(problem)[-1].strip()
        report.add("unreadable", f"A part of the log cannot be compared: {last}")


class Comparing:
    """Compares a log with its signed checkpoints, and determines the kind of manipulation where they differ."""

    def __init__(self, log: Log, report: Report, *, pinned: Sequence[Key]) -> None:
        self.log = log
        self.report = report
        self.pinned = pinned
        self.checkpoints: list[SignedCheckpoint] = []
        self.roots: dict[int, bytes] = {}
        self.whole_size = 0
        """Size up to which the leaves match the signed checkpoints."""
        self.signed: SignedCheckpoint | None = None
        """The largest checkpoint of a known key that matches the leaves."""
        self.turned = displaced(log.turns)
        """Indexes whose leaf was read out of order."""
        self.is_mended = False
        """Whether a manipulation of leaves was undone, so that they may not be those of the events."""
        self.used: set[int] = set()
        """Numbers of events without a leaf that an explanation covers."""
        self.trials = MOST_TRIALS

    def compare(
        self, anchors: Sequence[str] = (), stores: Sequence[AnchorStore] = (), *, is_recent: bool = False
    ) -> None:
        """Fills in the report. `is_recent`: events without a checkpoint are too new for one, which is no finding."""
        self.report.size = self.log.size
        with reported(self.report):
            self._compare(anchors, stores)
        self._count_signed()
        self.report.add_unsigned(is_recent=is_recent)

    def _compare(self, anchors: Sequence[str], stores: Sequence[AnchorStore]) -> None:
        self._look_for_duplicates()
        self._read_checkpoints()
        notes = chain(anchors, *(store.notes for store in stores))
        named = [found.key for found in self.checkpoints[:1]]
        self.trust = Trust(self.checkpoints, notes, self.report, pinned=self.pinned, named=named)
        self._look_at_keys()
        is_whole = self._walk({checkpoint.size for checkpoint in self.trust.anchors})
        self._look_at_times()
        self._name_changed_bodies()
        self._name_strays()
        if is_whole:
            self._look_for_a_cut()
        self._compare_with_anchors()
        for store in stores:
            self._look_for_a_cut_anchor(store)
        self._state_newer_anchors()
        self._look_at_unplaced()
        self.report.size = self.log.size
        self.report.root = self.roots.get(self.log.size, b"").hex()

    def _count_signed(self) -> None:
        report, size = self.report, self.signed.size if self.signed else 0
        report.signed = max(size, report.anchored_size)
        report.unsigned = max(0, self.log.size - report.signed) + self.log.waiting
        if self.signed and size == report.signed:
            report.signed_by = printable(self.signed.key)

    def _name_strays(self) -> None:
        """Reports leaves read out of order, and leaves without an explanation of their index."""
        for index in sorted(self.turned):
            self.report.add("reordering", f"The leaf at {index} is out of order.")
        for index, number, _ in self.log.strays:
            if 0 <= index < self.log.size:
                self.report.add(
                    "duplicate", f"Two leaves have the index {index}; the second is of event number {number}."
                )
            else:
                self.report.add("forged_index", f"Event number {number} states the index {index}.")

    # Checks without the tree

    def _look_for_duplicates(self) -> None:
        log = self.log
        waiting = [event.number for event in log.unplaced]
        if len(set(waiting)) < len(waiting):
            self.report.add("duplicate", "Two events without an index have the same number.")
        if twice := set(waiting).intersection(log.numbers):
            self.report.add("duplicate", f"Event number {min(twice)} has an index, and is also listed without one.")
        for index, number in repeated(log.numbers, -1):
            self.report.add("duplicate", f"Event number {number} is at {index} and at an earlier index.")
        for index, _ in repeated(log.ids, 0):
            self.report.add("duplicate", f"The event at {index} has the id of an earlier one.")

    def _read_checkpoints(self) -> None:
        for size, root, note in self.log.notes:
            try:
                found = SignedCheckpoint.parse(note)
            except InvalidCheckpointNote as problem:
                self.report.add("forged_checkpoint", f"The checkpoint of size {size} is invalid: {problem}.")
                continue
            if (found.size, found.root.hex()) != (size, root):
                self.report.add(
                    "forged_checkpoint",
                    f"The checkpoint of size {size} was signed for size {found.size} or another root.",
                )
            self.checkpoints.append(found)
        self.checkpoints.sort(key=lambda found: (found.size, found.epoch))
        before: SignedCheckpoint | None = None
        latest = self.checkpoints[0] if self.checkpoints else None
        for found in self.checkpoints:
            epoch = before.epoch if before else 1
            if before and found.origin != before.origin:
                self.report.add(
                    "forged_checkpoint", f"The checkpoint of size {found.size} belongs to another log, {found.origin}."
                )
            if latest and latest.at - found.at > CLOCK_TOLERANCE:
                self.report.add(
                    "clock_step_back",
                    f"The checkpoint of size {found.size} was signed before the one of {latest.size}.",
                )
                latest = found
            latest = max(latest or found, found, key=lambda each: each.at)
            if (found.epoch > epoch) != (found.replaced is not None) or found.epoch < epoch:
                self.report.add(
                    "forged_checkpoint",
                    f"The checkpoint of size {found.size} of epoch {found.epoch} follows epoch {epoch} without a valid"
                    " record.",
                )
            before = found
        if before and self.log.origin and self.log.origin != before.origin:
            self.report.add(
                "forged_checkpoint", f"The file names the log {self.log.origin}; its checkpoints belong to another."
            )

    def _look_at_keys(self) -> None:
        reported = set[bytes]()
        for found in self.checkpoints:
            if not self.trust.knows(found) and found.key.data not in reported:
                reported.add(found.key.data)
                self.report.add(
                    "unknown_key", f"From size {found.size} on checkpoints are signed by an untrusted key, {found.key}."
                )

    # The tree

    def _walk(self, anchored: set[int]) -> bool:
        """Whether the leaves lead to every signed root, as they are or after found manipulations were undone."""
        log = self.log
        good, marks = Tree(), sorted(anchored)
        for number, checkpoint in enumerate(self.checkpoints):
            if checkpoint.size > log.size:
                break
            while True:
                tree = self._grow(good, checkpoint.size, marks)
                if tree.root() == checkpoint.root and not self._holes(good.size, checkpoint.size):
                    if self.trust.knows(checkpoint):
                        self.signed = checkpoint
                    break
                if self._is_later_signed(tree, number):
                    self.report.add(
                        "forged_checkpoint",
                        f"The checkpoint of size {checkpoint.size} contradicts the leaves; later ones do not.",
                    )
                    break
                if not self._explain(good, checkpoint):
                    self.whole_size = good.size
                    return False
            good = tree
        if self._holes(good.size, log.size):
            self._report_holes(good.size, log.size)
            self.whole_size = good.size
            return False
        tree = self._grow(good, log.size, marks)
        self._compare_nodes()
        self.whole_size = tree.size
        return True

    def _grow(self, good: Tree, size: int, marks: Sequence[int]) -> Tree:
        """The tree up to a size; stores the roots of marked sizes."""
        tree = good.copy()
        view = memoryview(self.log.leaves)
        for mark in marks[bisect_left(marks, good.size) : bisect_right(marks, size)]:
            tree.extend(view[32 * tree.size : 32 * mark])
            self.roots[mark] = tree.root()
        tree.extend(view[32 * tree.size : 32 * size])
        view.release()
        self.roots[size] = tree.root()
        return tree

    def _is_later_signed(self, tree: Tree, number: int) -> bool:
        """Whether the next checkpoint matches the leaves, so that only this one is wrong."""
        if number + 1 >= len(self.checkpoints) or self.checkpoints[number + 1].size > self.log.size:
            return False
        following = self.checkpoints[number + 1]
        ahead = tree.copy().extend(self.log.leaves[32 * tree.size : 32 * following.size])
        return ahead.root() == following.root

    def _holes(self, start: int, stop: int) -> list[int]:
        return sorted(hole for hole in self.log.holes if start <= hole < stop)

    def _explain(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Finds a single manipulation between two checkpoints, reports it, and undoes it in memory."""
        explanations: Sequence[Callable[[Tree, SignedCheckpoint], bool]]
        if self._holes(good.size, checkpoint.size):
            explanations = (self._was_moved_away, self._was_deleted_leaf, self._was_deleted_in_place)
        else:
            explanations = (
                self._was_edited,
                self._was_inserted,
                self._was_reordered,
                self._was_deleted_and_closed,
                self._was_deleted_and_is_short,
            )
        if any(explanation(good, checkpoint) for explanation in explanations):
            self.is_mended = True
            return True
        if not self.report.findings or self.report.findings[-1].kind != "deletion":
            self.report.add(
                "rewrite",
                f"Between {good.size} and {checkpoint.size} the log differs from the checkpoint signed at"
                f" {checkpoint.at:%Y-%m-%d %H:%M} UTC by more than one change.",
            )
        return False

    def _leads_there(self, good: Tree, leaves: bytes | bytearray, checkpoint: SignedCheckpoint) -> bool:
        count = checkpoint.size - good.size
        self.trials -= count
        return self.trials > 0 and good.copy().extend(leaves[: 32 * count]).root() == checkpoint.root

    def _stretch(self, good: Tree, stop: int) -> bytearray:
        return self.log.leaves[32 * good.size : 32 * stop]

    def _was_edited(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Leaves were changed; their events contain the original values."""
        log = self.log
        differing = [index for index in log.differing if good.size <= index < checkpoint.size]
        if not differing:
            return False
        choices: Iterable[tuple[bool, ...]] = product((True, False), repeat=len(differing))
        if len(differing) > 8:
            choices = [(True,) * len(differing)]
        for choice in choices:
            leaves = self._stretch(good, checkpoint.size)
            changed = [index for index, is_changed in zip(differing, choice, strict=True) if is_changed]
            for index in changed:
                place = 32 * (index - good.size)
                leaves[place : place + 32] = log.differing[index][0]
            if self._leads_there(good, leaves, checkpoint):
                for index in changed:
                    digest, id_ = log.differing.pop(index)
                    log.leaves[32 * index : 32 * index + 32] = digest
                    self.report.add("edited_leaf", f"The leaf at {index} differs from the signed one.", id_)
                return True
        return False

    def _was_inserted(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Leaves were inserted, and later leaves moved up."""
        log = self.log
        for count in (1, 2, 3):
            stop = checkpoint.size + count
            if stop > log.size:
                return False
            leaves = self._stretch(good, stop)
            for start in range(0, len(leaves) - 32 * count + 1, 32):
                if self._leads_there(good, leaves[:start] + leaves[start + 32 * count :], checkpoint):
                    first = good.size + start // 32
                    for index in range(first, first + count):
                        self.report.add(
                            "insertion",
                            f"Event number {log.numbers[index]} at {index} was not in the log when it was signed.",
                        )
                    self._take_out(first, count)
                    return True
        return False

    def _take_out(self, first: int, count: int) -> None:
        log = self.log
        log.remove(first, count)
        log.differing = {
            index - count if index >= first + count else index: found
            for index, found in log.differing.items()
            if not first <= index < first + count
        }

    def _was_reordered(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Two leaves were swapped, possibly far apart. The numbers of their events show which."""
        log, stop = self.log, checkpoint.size
        here, there = self._out_of_order(good.size, stop), self._too_late(good.size, stop)
        likely = [*combinations(here[:16], 2), *product(here[:8], there)]
        if self._were_swapped(good, checkpoint, likely):
            return True
        ordered = sorted(range(good.size, stop), key=log.numbers.__getitem__)
        leaves = b"".join(bytes(log.leaves[32 * index : 32 * index + 32]) for index in ordered)
        if self._leads_there(good, leaves, checkpoint):
            self.report.add("reordering", f"The events between {good.size} and {stop} are in another order.")
            log.leaves[32 * good.size : 32 * stop] = leaves
            return True
        return self._were_swapped(good, checkpoint, [*combinations(here, 2), *product(here[8:], there)])

    def _out_of_order(self, start: int, stop: int) -> list[int]:
        """Indexes next to a break in the order of numbers, the widest breaks first."""
        numbers = self.log.numbers
        breaks = [
            (numbers[index - 1] - numbers[index], index)
            for index in range(max(start, 1), min(stop + 1, len(numbers)))
            if numbers[index] < numbers[index - 1]
        ]
        beside = [place for _, index in sorted(breaks, reverse=True) for place in (index - 1, index)]
        return [place for place in dict.fromkeys(beside) if start <= place < stop][:64]

    def _too_late(self, start: int, stop: int) -> list[int]:
        """Indexes after a range with numbers that belong into it: the farthest and the nearest, if there are many."""
        numbers = self.log.numbers
        if start >= stop:
            return []
        usual = sorted(numbers[start:stop])[-2:][0]
        late = [place for place in range(stop, len(numbers)) if -1 < numbers[place] < usual]
        return late[:-65:-1] + late[:-64][:64]

    def _were_swapped(self, good: Tree, checkpoint: SignedCheckpoint, pairs: Iterable[tuple[int, int]]) -> bool:
        log, leaves = self.log, self._stretch(good, checkpoint.size)
        for one, other in pairs:
            self._swap(leaves, good.size, one, other)
            if self._leads_there(good, leaves, checkpoint):
                for place, partner in ((one, other), (other, one)):
                    self.report.add(
                        "reordering",
                        f"Event number {log.numbers[place]} is at {place}; its index was {partner}.",
                    )
                self._swap(log.leaves, 0, one, other)
                log.numbers[one], log.numbers[other] = log.numbers[other], log.numbers[one]
                return True
            leaves = self._stretch(good, checkpoint.size)
        return False

    def _swap(self, leaves: bytearray, offset: int, one: int, other: int) -> None:
        """Swaps two indexes of a range that begins at `offset`; the second may be after its end."""
        log, place = self.log, 32 * (one - offset)
        mine = bytes(leaves[place : place + 32])
        leaves[place : place + 32] = bytes(log.leaves[32 * other : 32 * other + 32])
        if 32 * (other - offset) < len(leaves):
            leaves[32 * (other - offset) : 32 * (other - offset) + 32] = mine

    def _was_deleted_and_closed(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """A leaf was removed and later leaves moved down, but its event still exists."""
        leaves = self._stretch(good, checkpoint.size - 1)
        for event in self._candidates():
            for start in range(0, len(leaves) + 1, 32):
                if self._leads_there(good, leaves[:start] + event.hash + leaves[start:], checkpoint):
                    index = good.size + start // 32
                    self.used.add(event.number)
                    self.report.add("deletion", f"The leaf at {index} was removed and the gap closed.", event.id)
                    self.log.insert(index, event)
                    return True
        return False

    def _was_deleted_and_is_short(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Leaves and events were removed, and later leaves moved down. Reports it; later events cannot be compared."""
        last = self.checkpoints[-1]
        if self.log.size < last.size:
            self.report.add(
                "deletion",
                f"{last.size - self.log.size} leaves are missing, the first between {good.size} and {checkpoint.size};"
                " the gap was closed.",
            )
        elif all(self._is_younger(each.size - 1, each) for each in (checkpoint, last)) and self._is_younger(-1, last):
            # With newer events the log is as long as before, but the events that moved down are too young for an index
            # below a checkpoint. After an insertion older ones follow.
            self.report.add(
                "deletion",
                f"The event at {checkpoint.size - 1} is younger than the checkpoint of size {checkpoint.size}: leaves"
                f" after {good.size} were removed and the gap closed.",
            )
        return False

    def _is_younger(self, index: int, checkpoint: SignedCheckpoint) -> bool:
        return bool(self.log.times) and self.log.times[index] > checkpoint.instant

    def _candidates(self) -> list[Unplaced]:
        return [event for event in self.log.unplaced if event.number not in self.used][:20]

    def _was_moved_away(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """The leaf of an empty index is at another index."""
        log, holes = self.log, self._holes(good.size, checkpoint.size)
        last = [
            (index, log.numbers[index], bytes(log.leaves[32 * index : 32 * index + 32]))
            for index in range(max(checkpoint.size, log.size - 16), log.size)
            if index not in log.holes
        ]
        if len(holes) != 1:
            return False
        if self._was_pushed_out(holes[0], good, checkpoint):
            return True
        for index, number, digest in [*log.strays, *last]:
            if self._fits([(holes[0], digest)], good, checkpoint):
                self._name_moved(index, number, holes[0])
                if (index, number, digest) in log.strays:
                    log.strays.remove((index, number, digest))
                else:
                    log.remove(index, log.size - index)
                    log.holes = {hole for hole in log.holes if hole < index}
                    self._drop_empty_end()
                log.numbers[holes[0]] = number
                return True
        return False

    def _was_pushed_out(self, hole: int, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """The leaf of an empty index is at the index of another leaf, which was read after it."""
        log = self.log
        for stray in log.strays[:1000]:
            index, number, digest = stray
            if not good.size <= index < log.size:
                continue
            moved = bytes(log.leaves[32 * index : 32 * index + 32])
            filling = [(hole, moved), *([(index, digest)] if index < checkpoint.size else [])]
            if self._fits(filling, good, checkpoint):
                self._name_moved(index, log.numbers[index], hole)
                log.strays.remove(stray)
                log.leaves[32 * index : 32 * index + 32] = digest
                log.numbers[hole], log.numbers[index] = log.numbers[index], number
                # The event that was read belongs to the leaf that claimed this index.
                log.ids[hole], log.ids[index] = log.ids[index], 0
                log.differing.pop(index, None)
                return True
        return False

    def _name_moved(self, index: int, number: int, place: int) -> None:
        self.turned.discard(index)
        if index == place:
            self.report.add("reordering", f"The leaf at {index} is out of order.")
        else:
            self.report.add("forged_index", f"Event number {number} states the index {index}; its index is {place}.")

    def _drop_empty_end(self) -> None:
        log = self.log
        while log.size - 1 in log.holes:
            log.holes.remove(log.size - 1)
            log.remove(log.size - 1, 1)

    def _was_deleted_leaf(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Leaves were deleted; their events still exist and match."""
        holes, events = self._holes(good.size, checkpoint.size), self._candidates()
        if len(holes) == 1:
            fillings = [[event] for event in events]
        else:
            fillings = [list(some) for some in combinations(events, len(holes))] if len(holes) <= len(events) else []
        for filling in fillings:
            if self._fits([(hole, event.hash) for hole, event in zip(holes, filling, strict=True)], good, checkpoint):
                for hole, event in zip(holes, filling, strict=True):
                    self.used.add(event.number)
                    self.log.numbers[hole] = event.number
                    self.report.add("deletion", f"The leaf at {hole} is missing; its event still exists.", event.id)
                return True
        return False

    def _fits(self, filling: Sequence[tuple[int, bytes]], good: Tree, checkpoint: SignedCheckpoint) -> bool:
        leaves = self._stretch(good, checkpoint.size)
        for index, digest in filling:
            leaves[32 * (index - good.size) : 32 * (index - good.size) + 32] = digest
        if not self._leads_there(good, leaves, checkpoint):
            return False
        self.log.leaves[32 * good.size : 32 * checkpoint.size] = leaves
        self.log.holes -= {index for index, _ in filling}
        return True

    def _was_deleted_in_place(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        self._report_holes(good.size, checkpoint.size)
        return False

    def _report_holes(self, start: int, stop: int) -> None:
        for hole in self._holes(start, stop):
            self.report.add("deletion", f"The leaf at {hole} is missing.")

    def _compare_nodes(self) -> None:
        """Checks the inner hashes that the database stores so that proofs read few rows."""
        if not self.log.has_nodes:
            return
        wanted: dict[tuple[int, int], bytes] = {}
        level, below = 0, bytes(self.log.leaves)
        while len(below) >= 32 * 256:
            level += 8
            blocks = [below[start : start + 32 * 256] for start in range(0, len(below) - 32 * 256 + 1, 32 * 256)]
            below = b"".join(Tree().extend(block).root() for block in blocks)
            for index in range(len(blocks)):
                wanted[level, index] = below[32 * index : 32 * index + 32]
        for node_level, index, digest in self.log.nodes:
            if wanted.pop((node_level, index), b"").hex() != digest:
                self.report.add(
                    "damaged_node", f"The stored hash {index} of level {node_level} does not match its leaves."
                )
        for node_level, index in wanted:
            self.report.add("damaged_node", f"The hash {index} of level {node_level} is not stored.")

    # Checks after the tree

    def _look_at_times(self) -> None:
        """Compares the times of checkpoints with those of their events, and both with the clock."""
        log = self.log
        for index, id_ in log.future.items():
            if index not in log.differing:
                self.report.add("impossible_time", f"The event at {index} has a time in the future.", id_)
        add_future([*self.checkpoints, *(set(self.trust.anchors) - set(self.checkpoints))], log.limit, self.report)
        # Where the clock went back, it is named already; and each event has to be the one of its leaf.
        if self.is_mended or log.differing or log.future or "clock_step_back" in self.report.kinds:
            return
        start = 0
        for found in self.checkpoints:
            if found.size > self.whole_size:
                break
            latest, start = max(log.times[start : found.size], default=0), found.size
            if latest - found.instant > microseconds(CLOCK_TOLERANCE):
                self.report.add(
                    "impossible_time",
                    f"The checkpoint of size {found.size} states that it was signed at {found.at:%Y-%m-%d %H:%M} UTC,"
                    f" before its newest event, of {stated(latest)}.",
                )

    def _name_changed_bodies(self) -> None:
        """Reports events that differ from their leaves, which match the signed root."""
        log = self.log
        by_hash = {
            bytes(log.leaves[32 * index : 32 * index + 32]): index for index in log.differing if index < log.size
        }
        for index, (digest, id_) in sorted(log.differing.items()):
            if by_hash.get(digest, index) != index:
                self.report.add("reordering", f"The event at {index} belongs to the leaf at {by_hash[digest]}.", id_)
            else:
                self.report.add("edited_body", f"The event at {index} does not match its leaf.", id_)

    def _look_for_a_cut(self) -> None:
        if not self.checkpoints or self.checkpoints[-1].size <= self.log.size:
            return
        last = self.checkpoints[-1]
        self.report.add(
            "cut_tail",
            f"The log ends at {self.log.size}; {last.size - self.log.size} events after it were signed at"
            f" {last.at:%Y-%m-%d %H:%M} UTC.",
        )
        for event in self.log.unplaced:
            if not event.is_pending:
                self.used.add(event.number)

    @property
    def origin(self) -> str:
        return self.checkpoints[-1].origin if self.checkpoints else self.log.origin

    def _compare_with_anchors(self) -> None:
        origin = self.origin
        signed_size = max((found.size for found in self.checkpoints), default=0)
        epochs = self._epochs()
        confirming: list[SignedCheckpoint] = []
        contradicting: list[SignedCheckpoint] = []
        beyond: list[SignedCheckpoint] = []
        for anchor in self.trust.anchors:
            epoch = next((each for each in epochs if each.replaces(anchor)), None)
            if anchor.origin != origin:
                contradicting.append(anchor)
            elif epoch:
                epoch.lost.append(anchor)
            elif anchor.size > max(self.log.size, signed_size):
                beyond.append(anchor)
            elif anchor.size <= self.whole_size:
                (confirming if self.roots[anchor.size] == anchor.root else contradicting).append(anchor)
        for epoch in epochs:
            beyond += self._compare_epoch(epoch)
        if not self.trust.is_ambiguous:
            confirmed = sorted(confirming, key=lambda each: -each.size)
            if confirmed:
                self.report.anchored_size = confirmed[0].size
                self.report.signed_by = printable(confirmed[0].key)
        if false := next(iter(contradicting), None):
            if false.origin != origin:
                what = f"belongs to the log {false.origin}, and this one is {origin or 'not signed'}"
            else:
                what = f"has another root for size {false.size}"
            self.report.add(
                "rewrite",
                f"An anchor of {false.at:%Y-%m-%d %H:%M} UTC {what}: the log was rewritten and signed again.",
            )
        if largest := max(beyond, key=lambda each: each.size, default=None):
            self.report.add(
                "restored_backup",
                f"The size regressed from {largest.size} to {self.log.size}: an anchor of"
                f" {largest.at:%Y-%m-%d %H:%M} UTC has the larger size.",
            )

    def _epochs(self) -> list[Epoch]:
        """The epochs after the first one, by their records."""
        epochs, before = [], 1
        for found in self.checkpoints:
            if found.replaced and found.epoch > before:
                epochs.append(Epoch(found, *found.replaced, before))
            before = found.epoch
        return epochs

    def _compare_epoch(self, epoch: Epoch) -> list[SignedCheckpoint]:
        """Reports an epoch. Returns the anchors of its lost events that are larger than its record admits.

        A record that replaces anchored events must name the newest of their anchors, because the holder of the signing
        key can declare any history lost.
        """
        begun = epoch.begun
        known = [
            anchor
            for anchor in self.trust.anchors
            if (anchor.size, anchor.root) == (epoch.size, epoch.root)
            and anchor.epoch < begun.epoch
            and anchor.origin == begun.origin
        ]
        named = max(known, key=lambda each: each.epoch, default=None)
        admitted = named.position if named else (begun.epoch - 1, epoch.size)
        beyond = [anchor for anchor in epoch.lost if anchor.position > admitted]
        lost = [anchor for anchor in epoch.lost if anchor.position <= admitted]
        if not named and (false := next(iter(lost), None)):
            self.report.add(
                "rewrite",
                f"Epoch {begun.epoch} replaces a checkpoint of size {epoch.size} that no anchor has, and with it the"
                f" anchored one of size {false.size}: the log was rewritten and signed again.",
            )
        anchored = f", with {len(lost):,} of its anchors" if lost else ""
        self.report.add(
            "epoch",
            f"Epoch {begun.epoch} begins at {begun.size} ({begun.at:%Y-%m-%d %H:%M} UTC) and replaces the earlier log"
            f" from there to size {epoch.size}{anchored}.",
        )
        return beyond

    def _look_for_a_cut_anchor(self, store: AnchorStore) -> None:
        recorded = recorded_for(self.log.stored, store) if store.recorded is None else store.recorded
        if store.recorded is None and not recorded:
            self.report.remark(
                f"The log does not state what was stored in an anchor like {store.name}: a cut cannot be recognised."
            )
        found = [self.trust.by_note[note] for note in store.notes if note in self.trust.by_note]
        if store.is_lines and any(later.position <= each.position for each, later in pairwise(found)):
            self.report.remark(
                f"{store.name} has checkpoints twice or in another order; only newer ones are appended to an anchor."
            )
        # A key that only the log names is a finding of its own.
        named = {each.key.data for each in self.checkpoints}
        ours = [each for each in found if each.origin == self.origin]
        lost = recorded - {each.size for each in ours if each.key.data in named or self.trust.knows(each)}
        if lost:
            self.report.add(
                "cut_anchor",
                f"{store.name} has no checkpoint of size {max(lost)}, and {len(lost) - 1:,} others are missing; the log"
                " recorded that they were stored there. It was cut, or this is an older copy or another file.",
            )

    def _state_newer_anchors(self) -> None:
        """States that the log names newer anchors than those that were given, which may be older copies."""
        given = max((each.size for each in self.trust.anchors), default=0)
        newest = max(self.log.stored.items(), key=lambda each: each[1], default=("", 0))
        if given < newest[1] and self.trust.by_note and "cut_anchor" not in self.report.kinds:
            self.report.remark(
                f"The log recorded that its checkpoint of size {newest[1]} was stored at {newest[0]}; the given anchors"
                f" end at size {given}."
            )

    def _look_at_unplaced(self) -> None:
        for event in self.log.unplaced:
            if event.number in self.used:
                continue
            if not event.is_pending and self.whole_size < self.log.size:
                continue  # removals from the middle have been reported
            if not event.is_pending:
                self.report.add(
                    "insertion",
                    "The event has no index and is not queued for one: it was inserted around the log.",
                    event.id,
                )
            elif event.waited > BACKLOG_SECONDS:
                self.report.add(
                    "backlog", f"The event has waited more than {event.waited:.0f} s for an index.", event.id
                )


def add_future(found: Iterable[SignedCheckpoint], limit: int, report: Report) -> None:
    """Reports checkpoints with a time in the future."""
    for each in found:
        if each.instant > limit:
            report.add(
                "impossible_time",
                f"A checkpoint of size {each.size} states that it was signed at {each.at:%Y-%m-%d %H:%M} UTC, in the"
                " future.",
            )


def recorded_for(stored: Mapping[str, int], store: AnchorStore) -> set[int]:
    """Sizes that the log recorded as stored at anchors of this form; in JSON Lines, other anchors than files if it
    names no file.
    """
    files = {sink for sink in stored if sink.startswith("file:")}
    wanted = (files or stored.keys()) if store.is_lines else stored.keys() - files
    return {stored[sink] for sink in wanted}


def repeated(values: array[int], nothing: int) -> Iterator[tuple[int, int]]:
    """Indexes whose value occurs earlier. Sorts in parts, because a set takes a hundred bytes a value."""
    parts = [array(values.typecode, sorted(values[start : start + SORTED])) for start in range(0, len(values), SORTED)]
    twice = {value for value, following in pairwise(merge(*parts)) if value == following} - {nothing}
    if not twice:
        return
    seen = set()
    for index, value in enumerate(values):
        if value in twice:
            if value in seen:
                yield index, value
            seen.add(value)


def displaced(turns: Sequence[int]) -> set[int]:
    """The smallest set of indexes without which the rest is in order."""
    ends: list[int] = []
    """Index of the lowest last element of ascending sequences found so far, by their length."""
    before: list[int] = []
    for turn, place in enumerate(turns):
        length = bisect_left(ends, place, key=turns.__getitem__)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [turn]
    in_order = set()
    turn = ends[-1] if ends else -1
    while turn >= 0:
        in_order.add(turns[turn])
        turn = before[turn]
    return set(turns) - in_order


# Files


def verify_export(
    lines: Iterable[str | bytes],
    *,
    anchors: Sequence[str] = (),
    stores: Sequence[AnchorStore] = (),
    pinned: Sequence[Key] = (),
) -> Report:
    """Verifies an exported log, or events with their proofs, one a line. Raises CannotRead."""
    records = enumerate(lines, 1)
    head = parsed(*next(records, (1, "")))
    if head.get("format") == EVENT_FORMAT:
        following = (parsed(number, line) for number, line in records)
        every = [*anchors, *chain.from_iterable(store.notes for store in stores)]
        return verify_selection(chain([head], following), anchors=every, pinned=pinned)
    if head.get("format") == RECEIPT_FORMAT:
        raise CannotRead("The file is a receipt. Verify it with --receipt.")
    if head.get("format") != LOG_FORMAT:
        raise CannotRead("The file is not a memadmin audit log: its first line has no known format.")
    report = Report()
    reading = ExportReader(head, report)
    for number, line in records:
        reading.read(number, parsed(number, line))
    reading.conclude()
    Comparing(reading.log, report, pinned=pinned).compare(anchors, stores)
    reading.compare_counts()
    return report


class ExportReader(LogReader):
    """Reads the lines of an export. Each must be in the format: other readers could take it for a part of the log."""

    def __init__(self, head: dict[str, Any], report: Report) -> None:
        try:
            keyed(head, {"format", "origin", "exported_at", "size", "details"})
            self.exported_at = instant_of(head["exported_at"])
            self.size = whole_number(head["size"])
            if type(head["details"]) is not bool:
                raise ValueError("it does not state whether it has details")
            origin = text_of(head["origin"])
        except ValueError as problem:
            raise CannotRead(f"The first line is not in the format of a log: {problem}.") from problem
        super().__init__(report, has_details=head["details"])
        self.log.origin = origin
        self.count = 0
        self.ended: int | None = None

    def read(self, number: int, record: dict[str, Any]) -> None:
        """Reads the record of a line; reports it if it is not in the format."""
        try:
            if self.ended is not None:
                raise ValueError("it follows the end record")
            kind = next((kind for kind in RECORDS if kind in record), None)
            if kind is None:
                raise ValueError("its kind is unknown")
            keyed(record, *RECORDS[kind])
            details = checked_details(record)
            if details and not self.has_details:
                raise ValueError("it has details, and the first line states that the file has none")
            if kind == "index":
                event = None if record["event"] is None else checked_event(record["event"])
                place, leaf = whole_number(record["index"]), hash_of(record["leaf"])
                self.count += 1
                self.leaf(place, whole_number(record["number"]), leaf, event, details)
            elif kind == "checkpoint":
                found = keyed(record["checkpoint"], {"size", "root", "note"})
                hash_of(found["root"])
                self.log.notes.append((whole_number(found["size"]), found["root"], text_of(found["note"])))
            elif kind == "waiting":
                found = keyed(record["waiting"], {"is_pending", "seconds"})
                waited, is_pending = found["seconds"], found["is_pending"]
                if type(waited) not in (int, float) or waited < 0 or type(is_pending) is not bool:
                    raise ValueError("it does not state how long the event has waited")
                self.unplaced(
                    checked_event(record["event"]), is_pending=is_pending, waited=float(waited), details=details
                )
            elif kind == "anchored":
                found = keyed(record["anchored"], {"sink", "size", "at", "receipt"})
                instant_of(found["at"]), text_of(found["receipt"])
                if text_of(found["sink"]) in self.log.stored:
                    raise ValueError("it names an anchor again")
                self.log.stored[found["sink"]] = whole_number(found["size"])
            else:
                self.ended = whole_number(keyed(record["end"], {"leaves"})["leaves"])
        except (ValueError, OverflowError) as problem:
            self.report.add("unreadable", f"Line {number} is not in the format of a log: {problem}.")

    def conclude(self) -> None:
        if self.ended is None:
            self.report.add("incomplete_file", "The file has no end record: it was not written or copied completely.")
        latest = max((at for at in self.log.times if at <= self.log.limit), default=0)
        if latest - self.exported_at > microseconds(READERS_TOLERANCE) or self.exported_at > self.log.limit:
            self.report.add(
                "impossible_time",
                f"The file states that it was exported at {stated(self.exported_at)}, before its newest event, or in"
                " the future.",
            )
        if self.has_details:
            self.erasures.conclude(self.report)
        else:
            self.report.remark("The file contains no details of events; they were not compared.")

    def compare_counts(self) -> None:
        """Reports counts that differ from the lines, unless a finding explains it."""
        if self.report.verdict == "broken" or (self.ended, self.size) == (self.count, self.log.size):
            return
        self.report.add(
            "incomplete_file",
            f"The file has {self.count} indexes; its first line states {self.size}, its last line {self.ended}.",
        )


def parsed(number: int, line: str | bytes) -> dict[str, Any]:
    try:
        found = strict_json(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CannotRead(f"Line {number} of the file is not a JSON object that every reader understands alike.")
    return found


def verify_selection(
    records: Iterable[dict[str, Any]], *, anchors: Sequence[str] = (), pinned: Sequence[Key] = ()
) -> Report:
    """Verifies events with a proof each. A selection cannot show whether events were left out."""
    report = Report(is_selection=True)
    proving = Proving(anchors, pinned)
    for record in records:
        proving.prove(record, report)
    proving.conclude(report)
    report.remark(f"This is a selection of {proving.count} events; it cannot show whether others were left out.")
    return report


def verify_event(proof: dict[str, Any], *, anchors: Sequence[str] = (), pinned: Sequence[Key] = ()) -> Report:
    """Verifies one event with its proof."""
    report, proving = Report(is_selection=True), Proving(anchors, pinned)
    proving.prove(proof, report)
    proving.conclude(report)
    return report


class Proving:
    """Checks events against the checkpoints in their proofs, each of which is checked once."""

    def __init__(
        self, anchors: Sequence[str], pinned: Sequence[Key], handovers: Sequence[SignedCheckpoint] = ()
    ) -> None:
        """`handovers`: further checkpoints of the log, in which keys sign in their successors."""
        self.anchors = anchors
        self.pinned = pinned
        self.handovers = handovers
        self.count = 0
        self.checkpoints: dict[str, SignedCheckpoint] = {}
        self._refused: dict[str, InvalidCheckpointNote] = {}
        self._proved = 0
        self._seen: set[object] = set()

    def prove(self, proof: dict[str, Any], report: Report) -> None:
        event = proof.get("event")
        id_ = event.get("id") if isinstance(event, dict) else None
        self.count += 1
        try:
            is_proof = "checkpoint" in proof
            keyed(
                proof,
                {"format", "event", "index"} | ({"path", "checkpoint", "anchors"} if is_proof else set()),
                {"details"} if is_proof else set(),
            )
            if proof["format"] != EVENT_FORMAT:
                raise ValueError("it has another format")
            event, details = checked_event(proof["event"]), checked_details(proof)
            index = None if proof["index"] is None and not is_proof else whole_number(proof["index"])
            path, note = (
                ([hash_of(step) for step in proof["path"]], text_of(proof["checkpoint"])) if is_proof else ([], "")
            )
            for stored in proof["anchors"] if is_proof else ():
                for text in keyed(stored, {"sink", "at", "receipt"}).values():
                    text_of(text)
        except (TypeError, ValueError) as problem:
            report.add("unreadable", f"A proof has no valid event, index, path or checkpoint: {problem}.", id_)
            return
        for same in (event["id"], event["number"], *([("index", index)] if index is not None else ())):
            if same in self._seen:
                report.add("duplicate", "The event, its number or its index is in the file twice.", id_)
                break
        self._seen |= {event["id"], event["number"], ("index", index)}
        if details and not details_match(event, details):
            report.add("edited_details", "The details do not match the event's commitment.", id_)
        if index is None or not is_proof:
            return
        try:
            checkpoint = self._checkpoint(note)
        except InvalidCheckpointNote as problem:
            report.add("forged_checkpoint", f"The checkpoint of the proof is invalid: {problem}.", id_)
            return
        if root_by_inclusion(index, checkpoint.size, leaf_hash(event), path) != checkpoint.root:
            report.add("bad_proof", f"The event does not lead to the root signed for size {checkpoint.size}.", id_)
            return
        if instant_of(event["at"]) - checkpoint.instant > microseconds(CLOCK_TOLERANCE):
            report.add(
                "impossible_time",
                f"The event is younger than its checkpoint of size {checkpoint.size}, of {stated(checkpoint.instant)}.",
                id_,
            )
        self._proved += 1

    def _checkpoint(self, note: str) -> SignedCheckpoint:
        if note in self._refused:
            raise self._refused[note]
        if note not in self.checkpoints:
            try:
                self.checkpoints[note] = SignedCheckpoint.parse(note)
            except InvalidCheckpointNote as problem:
                self._refused[note] = problem
                raise
        return self.checkpoints[note]

    def conclude(self, report: Report) -> None:
        """Checks signatures and anchors."""
        found = sorted(self.checkpoints.values(), key=lambda each: each.size)
        report.signed, report.unsigned = self._proved, self.count - self._proved
        if found:
            with reported(report):
                self._compare(found, report)
        report.add_unsigned()

    def _compare(self, found: Sequence[SignedCheckpoint], report: Report) -> None:
        largest = found[-1]
        add_future(found, readers_limit(), report)
        report.size, report.root, report.signed_by = largest.size, largest.root.hex(), printable(largest.key)
        own = [*found, *self.handovers]
        positions = {each.position for each in found}
        trust = Trust(own, self.anchors, report, pinned=self.pinned, named=[self._named(found)], positions=positions)
        origins = {largest.origin}
        for each in found:
            if not trust.knows(each):
                report.add("unknown_key", f"The checkpoint of size {each.size} is signed by {each.key}.")
            if each.origin not in origins:
                origins.add(each.origin)
                report.add(
                    "forged_checkpoint",
                    f"The checkpoint of size {each.size} belongs to the log {each.origin}, and others to"
                    f" {largest.origin}.",
                )
        confirmed = set[tuple[str, int, bytes]]()
        for anchor in trust.anchors:
            same = [each for each in found if (anchor.origin, anchor.position) == (each.origin, each.position)]
            if not same:
                continue
            confirmed.add((anchor.origin, anchor.size, anchor.root))
            if any(each.root != anchor.root for each in same):
                report.add("rewrite", f"An anchor has another root for size {anchor.size}.")
        self._count_anchored(found, set() if trust.is_ambiguous else confirmed, report)

    def _named(self, found: Sequence[SignedCheckpoint]) -> Key:
        """The key that is known when none is pinned: that of the first anchor with one of the checkpoints, else that of
        the largest checkpoint. A stranger's checkpoint beside one of the log would otherwise count as much.
        """
        stated = {(each.origin, each.position, each.root) for each in found}
        for note in () if self.pinned else self.anchors:
            with suppress(InvalidCheckpointNote):
                anchor = SignedCheckpoint.parse(note, is_checked=False)
                if (anchor.origin, anchor.position, anchor.root) in stated and anchor.is_signed_by(anchor.key):
                    return anchor.key
        return found[-1].key

    def _count_anchored(
        self, found: Sequence[SignedCheckpoint], confirmed: Set[tuple[str, int, bytes]], report: Report
    ) -> None:
        """An anchor confirms the selection only if anchors confirm each of its checkpoints."""
        left = [each for each in found if (each.origin, each.size, each.root) not in confirmed]
        if not left:
            report.anchored_size = found[-1].size
        elif self.anchors:
            others = "" if len(left) == len(found) else ", but other checkpoints of the selection"
            report.remark(
                f"No anchor confirms size {left[-1].size}{others}. Request a proof against an anchored checkpoint."
            )


def verify_consistency(proof: dict[str, Any], *, pinned: Sequence[Key] = ()) -> Report:
    """Verifies that the log of one checkpoint begins with the log of another."""
    report = Report()
    try:
        keyed(proof, {"format", "old", "new", "path"})
        old, new = SignedCheckpoint.parse(text_of(proof["old"])), SignedCheckpoint.parse(text_of(proof["new"]))
        path = [hash_of(step) for step in proof["path"]]
    except (InvalidCheckpointNote, TypeError, ValueError) as problem:
        raise CannotRead(f"The proof cannot be read: {problem}.") from problem
    report.size, report.root = new.size, new.root.hex()
    report.signed, report.signed_by = new.size, printable(new.key)
    if old.origin != new.origin:
        report.add("forged_checkpoint", "The checkpoints belong to different logs.")
    if not consistency_holds(old.size, old.root, new.size, new.root, path):
        report.add("rewrite", f"The log of size {new.size} does not begin with the one of size {old.size}.")
    if old.at - new.at > CLOCK_TOLERANCE:
        report.add("clock_step_back", f"The checkpoint of size {new.size} was signed before the one of {old.size}.")
    add_future((old, new), readers_limit(), report)
    trust = Trust([old, new], (), report, pinned=pinned, named=[old.key])
    for found in (old, new):
        if not trust.knows(found):
            report.add("unknown_key", f"The checkpoint of size {found.size} is signed by {found.key}.")
    return report


def notes_in(text: str) -> list[str]:
    """The notes of a file: one note, or JSON Lines with notes in them: a file anchor, an earlier export."""
    return read_anchors(line.encode() for line in text.splitlines(keepends=True))[0]


def read_anchors(lines: Iterable[bytes]) -> tuple[list[str], str]:
    """The notes of a file, and its kind: `note`, one note; `export`, an earlier export; `lines`, any other file, which
    counts as a file anchor.

    A line that is no note stays in the list, so that it is counted.
    """
    notes: list[str] = []
    single, kind = bytearray(), "lines"
    for number, line in enumerate(lines):
        if len(single) <= MOST_NOTE:
            single += line
        record = object_in(line)
        if number == 0 and record.get("format") == LOG_FORMAT:
            kind = "export"
            continue
        if kind == "export" and "checkpoint" in record:
            record = record["checkpoint"] if isinstance(record["checkpoint"], dict) else {}
        elif kind == "export" and not RECORDS.keys().isdisjoint(record):
            continue
        elif kind == "export":
            kind = "lines"
        note = record.get("note")
        notes.append(note if isinstance(note, str) else line[:MOST_TEXT].decode(errors="replace"))
    with suppress(InvalidCheckpointNote, UnicodeDecodeError):
        if len(single) <= MOST_NOTE:
            SignedCheckpoint.parse(single.decode(), is_checked=False)
            return [single.decode()], "note"
    return notes, kind


def object_in(line: bytes) -> dict[str, Any]:
    """The JSON object of a line; an empty one if it has none."""
    with suppress(ValueError, RecursionError):
        record = strict_json(line)
        if isinstance(record, dict):
            return record
    return {}


# Receipts of requests


Check = Callable[[str, object], None]
"""A condition of a value of a receipt. Raises InvalidReceiptValue with the path of the value, and without the value
itself: it may be what must not be in a receipt.
"""

MOST_ENTRIES = 1000
LARGEST = 2**53 - 1
"""Numbers are doubles in canonical JSON."""

CODE = re.compile(r"[a-z0-9_.-]{1,60}")
PLACE = re.compile(r"(?:[a-z0-9_.-]{1,60}/)?[A-Za-z0-9_.-]{1,64}")
"""A step, the name of a store, or both: `memories`, `sessions/main`."""
DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


class InvalidReceiptValue(ValueError):
    """A receipt contains another value than the format allows. The message is a sentence that names its path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path} {problem}.")


def matching(pattern: re.Pattern[str], name: str) -> Check:
    def check(path: str, value: object) -> None:
        if type(value) is not str or not pattern.fullmatch(value):
            raise InvalidReceiptValue(path, f"is not {name}")

    return check


def one_of(*words: str) -> Check:
    def check(path: str, value: object) -> None:
        if value not in words:
            raise InvalidReceiptValue(path, f"is none of {', '.join(words)}")

    return check


def row_count(path: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= LARGEST:
        raise InvalidReceiptValue(path, "is not a count")


def moment(path: str, value: object) -> None:
    """A time in UTC with microseconds, or a day."""
    try:
        if type(value) is str and (INSTANT.fullmatch(value) or DATE.fullmatch(value)):
            datetime.fromisoformat(value)
            return
    except ValueError:
        pass
    raise InvalidReceiptValue(path, "is neither a time in UTC with microseconds nor a date")


def an_event(path: str, value: object) -> None:
    try:
        checked_event(value)
    except ValueError as problem:
        raise InvalidReceiptValue(path, f"is not an event: {problem}") from problem


def or_null(check: Check) -> Check:
    return lambda path, value: None if value is None else check(path, value)


def list_of(check: Check) -> Check:
    def check_all(path: str, value: object) -> None:
        if type(value) is not list or len(value) > MOST_ENTRIES:
            raise InvalidReceiptValue(path, f"is not a list of at most {MOST_ENTRIES:,} entries")
        for index, entry in enumerate(value):
            check(f"{path}[{index}]", entry)

    return check_all


def entries(name: re.Pattern[str], check: Check) -> Check:
    def check_all(path: str, value: object) -> None:
        if type(value) is not dict or len(value) > MOST_ENTRIES:
            raise InvalidReceiptValue(path, f"is not an object of at most {MOST_ENTRIES:,} entries")
        for index, (key, entry) in enumerate(value.items()):
            if type(key) is not str or not name.fullmatch(key):
                raise InvalidReceiptValue(path, f"has an entry with a name that is not allowed, number {index + 1}")
            check(f"{path}.{key}", entry)

    return check_all


def members(checks: dict[str, Check]) -> Check:
    """An object with exactly these members."""

    def check_all(path: str, value: object) -> None:
        if type(value) is not dict:
            raise InvalidReceiptValue(path, "is not an object")
        if missing := sorted(checks.keys() - value.keys()):
            raise InvalidReceiptValue(f"{path}.{missing[0]}", "is missing")
        if value.keys() - checks.keys():
            raise InvalidReceiptValue(path, f"has other members than {', '.join(checks)}")
        for key, check in checks.items():
            check(f"{path}.{key}", value[key])

    return check_all


a_code, a_place, an_id = matching(CODE, "a code"), matching(PLACE, "a step or a store"), matching(UUID, "a UUID")

check_payload: Check = members(
    {
        "request": an_id,
        "number": row_count,
        "kind": one_of("erasure", "access", "restriction"),
        "outcome": one_of("complete", "exceptions", "refused", "cancelled", "failed"),
        "subject": an_id,
        "times": entries(CODE, moment),
        "actors": list_of(members({"role": one_of("requester", "approver"), "actor": an_id})),
        "counts": entries(PLACE, row_count),
        "held": entries(PLACE, row_count),
        "exceptions": list_of(members({"code": a_code, "place": a_place, "count": row_count})),
        "out_of_reach": list_of(members({"code": a_code, "place": a_place, "until": or_null(moment)})),
        "scans": list_of(members({"at": moment, "rows_read": row_count, "found": row_count})),
        "versions": members({"code": a_code, "data_map": a_code, "policy": or_null(a_code)}),
        "backups_until": or_null(moment),
    }
)
"""The content of a receipt: ids, counts, times and codes, and nothing that could name the person."""

check_receipt: Check = members(
    {
        "format": one_of(RECEIPT_FORMAT),
        "id": an_id,
        "payload": check_payload,
        "event": an_event,
        "index": row_count,
        "path": list_of(matching(HASH, "a hash")),
        "checkpoint": matching(re.compile(r"[^\x00]{1,65536}", re.DOTALL), "a note"),
        "key": matching(re.compile(r"[^\s]{1,1000}"), "a public key"),
        "signature": matching(re.compile(r"[A-Za-z0-9+/=]{88}"), "a signature"),
    }
)


def receipt_id(payload: dict[str, Any]) -> str:
    """The id of a payload, which the event in the log names: a UUID of version 8 from SHA-256.

    122 bits of the hash are enough: the log fixes the id, so a forger needs another payload with the same id. Whoever
    could choose both payloads has the key that signs, and could write a false receipt at once.
    """
    return derived_id(RECEIPT_FORMAT.encode() + b":" + canonical(payload))


def derived_id(content: bytes) -> str:
    """A UUID of version 8 from the SHA-256 of a content."""
    digest = bytearray(sha256(content).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@dataclass
class ReceiptReport(Report):
    """Result of the verification of a receipt."""

    receipt: dict[str, Any] | None = None
    """The receipt, if it is in the format."""

    @property
    def statements(self) -> list[str]:
        """The content of the receipt in sentences; empty if it cannot be relied on."""
        if self.receipt is None or self.verdict not in ("ok", "unanchored"):
            return []
        return statements_of(self.receipt)

    def as_json(self) -> dict[str, Any]:
        """`receipt` is null if it cannot be relied on."""
        found = None
        if self.receipt is not None and (statements := self.statements):
            found = {"id": self.receipt["id"], "payload": self.receipt["payload"], "statements": statements}
        return super().as_json() | {"receipt": found}


def verify_receipt(
    text: str | bytes, *, pinned: Sequence[Key], anchors: Sequence[str] = (), handovers: Sequence[str] = ()
) -> ReceiptReport:
    """Verifies a receipt: its signature, and that the signed log contains an event that names it. Raises CannotRead.

    `pinned`: at least one key, under the name of the log. `handovers`: checkpoints of the log, in which keys sign in
    their successors.
    """
    report = ReceiptReport(is_selection=True)
    receipt = parsed_receipt(text)
    try:
        check_receipt("receipt", receipt)
        key, signature = Key.parse(receipt["key"]), decoded(receipt["signature"])
    except (InvalidCheckpointNote, OverflowError, ValueError) as problem:
        report.add("unreadable", f"The receipt is not in the format: {problem}")
        return report
    report.receipt = receipt
    id_ = receipt["event"]["id"]
    signed = {name: value for name, value in receipt.items() if name != "signature"}
    if not key.has_signed(RECEIPT_CONTEXT + canonical(signed), signature):
        report.add("forged_receipt", f"The receipt was changed, or was not signed by {key}.")
    content = text if isinstance(text, bytes) else text.encode()
    if content.removesuffix(b"\n") != canonical(receipt):
        report.add("forged_receipt", "The text of the receipt was written anew: it is not canonical JSON.")
    own_id = receipt_id(receipt["payload"])
    if receipt["id"] != own_id:
        report.add("forged_receipt", "The id of the receipt is not derived from its content.")
    if own_id not in (*receipt["event"]["shown"], receipt["event"]["object"]):
        report.add("other_event", "The event does not name this receipt.", id_)
    proving = Proving(anchors, pinned, readable(handovers))
    proof = {name: receipt[name] for name in ("event", "index", "path", "checkpoint")}
    proving.prove(proof | {"format": EVENT_FORMAT, "anchors": []}, report)
    proving.conclude(report)
    for checkpoint in proving.checkpoints.values():
        # Only the key of the checkpoint is compared with the trusted keys.
        if checkpoint.key != key:
            report.add("forged_receipt", f"The receipt is signed by {key}, and its checkpoint by {checkpoint.key}.")
        if checkpoint.origin not in {each.name for each in pinned}:
            report.add("other_log", f"The receipt belongs to the log {checkpoint.origin}, and the key to another.")
    return report


def parsed_receipt(text: str | bytes) -> dict[str, Any]:
    """The object in a text that is a receipt of this version. Raises CannotRead."""
    if len(text) > MOST_RECEIPT:
        raise CannotRead(f"The file is no receipt: it has more than {MOST_RECEIPT:,} bytes.")
    try:
        receipt = strict_json(text)
    except (ValueError, RecursionError) as problem:
        raise CannotRead(
            "The file is no complete receipt: it is not one JSON object that every reader understands alike."
        ) from problem
    format_ = receipt.get("format") if isinstance(receipt, dict) else None
    if format_ == RECEIPT_FORMAT:
        return dict(receipt)
    if isinstance(format_, str) and format_.startswith("memadmin-receipt/"):
        raise CannotRead(f"The receipt has the format {format_[:40]}; this verifier reads {RECEIPT_FORMAT}.")
    raise CannotRead("The file is no receipt: it does not state the format of one.")


def readable(notes: Iterable[str]) -> list[SignedCheckpoint]:
    found = []
    for note in notes:
        with suppress(InvalidCheckpointNote):
            found.append(SignedCheckpoint.parse(note, is_checked=False))
    return found


ROWS = {"erasure": "Rows erased", "access": "Rows provided", "restriction": "Rows restricted"}
OUTCOMES = {
    "complete": "complete",
    "exceptions": "complete, with exceptions",
    "refused": "refused",
    "cancelled": "cancelled",
    "failed": "failed",
}


def statements_of(receipt: dict[str, Any]) -> list[str]:
    """The content of a receipt in sentences, each a line."""
    found, event = receipt["payload"], receipt["event"]
    lines = [
        f"Receipt {receipt['id']} of request {found['number']}, {found['request']}: {found['kind']} for the subject"
        f" with the pseudonym {found['subject']}.",
        f"Outcome: {OUTCOMES[found['outcome']]}.",
        *(f"{name.replace('_', ' ').capitalize()} {at}." for name, at in sorted(found["times"].items())),
        *(f"{each['role'].capitalize()}: {each['actor']}." for each in found["actors"]),
        *counted(ROWS[found["kind"]], found["counts"]),
        *counted("Rows kept by a legal hold", found["held"]),
        f"Exceptions: {len(found['exceptions'])}.",
        *(f"  {each['code']} in {each['place']}: {each['count']:,} rows" for each in found["exceptions"]),
        f"Out of reach: {len(found['out_of_reach'])}.",
        *(
            f"  {each['code']} in {each['place']}, {'until ' + each['until'] if each['until'] else 'without an end'}"
            for each in found["out_of_reach"]
        ),
        *(
            f"Scan at {each['at']}: {each['rows_read']:,} rows read, {each['found']:,} found."
            for each in found["scans"]
        ),
    ]
    if not found["scans"]:
        lines.append("No scan for remaining data is stated.")
    lines.append(
        f"Backups may contain the data until {found['backups_until']}."
        if found["backups_until"]
        else "No date is stated after which no backup contains the data."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(found["versions"].items()) if version)
    lines.append(f"Versions: {versions}.")
    lines.append(f"Recorded by event {event['id']} of {event['at']}, at index {receipt['index']} of the log.")
    return [printable(line) for line in lines]


def counted(title: str, counts: dict[str, int]) -> list[str]:
    """The sum of counts, and each of them."""
    lines = [f"{title}: {sum(counts.values()):,}."]
    return lines + [f"  {place}: {count:,}" for place, count in sorted(counts.items())]


RECEIPT_VERDICTS = {
    "ok": "OK: the receipt is genuine, its event is in the signed log, and an anchor confirms it",
    "unanchored": "UNANCHORED: the receipt is genuine and its event is in the signed log, but no anchor confirms it;"
    " the owner of the database and the key could have rewritten it",
    "broken": "BROKEN: the receipt was changed, or does not belong to this log; do not rely on what it states",
}


def receipt_text(report: ReceiptReport) -> str:
    """The report on a receipt for people."""
    lines = [RECEIPT_VERDICTS[report.verdict] + ".", *report.statements]
    if report.statements:
        lines.append(f"Signed by key {report.signed_by}.")
    return "\n".join([*lines, *finding_lines(report), *report.notes]) + "\n"


# Databases

EVENT = """json_build_object(
    'v', 1, 'number', event.number, 'id', event.id, 'type', event.type,
    'at', to_char(event.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    'actor_kind', event.actor_kind, 'actor', event.actor_ref, 'role', event.role_ref,
    'object_kind', event.object_kind, 'object', event.object_ref, 'subject', event.subject_ref,
    'shown', (SELECT coalesce(json_agg(one ORDER BY one::text COLLATE "C"), '[]') FROM unnest(event.shown) AS one),
    'outcome', event.outcome, 'reason', event.reason_code, 'counters', event.counters, 'cause', event.cause,
    'commitment', encode(event.commitment, 'hex')
)::text"""
DETAILS = """(
    SELECT json_build_object('salt', encode(detail.salt, 'hex'), 'text', detail.details)::text
    FROM audit_detail AS detail WHERE detail.event_id = event.id
)"""
EVENTS = "SELECT event.number, {event}, {details} FROM audit_event AS event WHERE event.number = ANY(%s)"
ERASURES = " AND event.type IN ('details.erased', 'name.erased', 'user.row_deleted', 'actor.named', 'actor.forgotten')"
UNPLACED = """
SELECT event.number, pending.number IS NOT NULL,
    event.at < %(late)s OR event.at > %(future)s,
    event.at > %(limit)s AND event.at <= %(future)s
FROM audit_event AS event LEFT JOIN audit_pending AS pending USING (number)
WHERE NOT EXISTS (SELECT FROM audit_leaf AS leaf WHERE leaf.event_number = event.number)
ORDER BY 1
"""
ACTORS = "SELECT ref::text, kind, label, user_id, encode(salt, 'hex') FROM audit_actor ORDER BY ref"
NEWEST_CHECKPOINT = "SELECT coalesce(max(size), 0) FROM audit_checkpoint"
RECORDED = """
SELECT sink, array_agg(checkpoint_size ORDER BY id) FROM audit_anchor
WHERE outcome = 'anchored' GROUP BY sink ORDER BY max(id)
"""
STILL_UNPLACED = """
SELECT number FROM unnest(%s::bigint[]) AS number
WHERE NOT EXISTS (SELECT FROM audit_leaf AS leaf WHERE leaf.event_number = number)
"""
BATCH = 2000


def verify_database(
    connect: Callable[[], Any],
    *,
    anchors: Sequence[str] = (),
    stores: Sequence[AnchorStore] = (),
    pinned: Sequence[Key] = (),
    wait: Callable[[float], None] = time.sleep,
) -> Report:
    """Verifies the log in a database, in one snapshot. `connect` returns a new psycopg connection.

    A read-only role needs SELECT on the audit tables; without it on audit_detail, details are not compared. Waits up to
    ten seconds for events without an index or a checkpoint that are not recent.
    """
    report = Report()
    with connect() as connection:
        connection.rollback()
        connection.isolation_level = 3  # REPEATABLE READ
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT has_table_privilege('audit_detail', 'SELECT'), clock_timestamp()")
            may_read_details, now = cursor.fetchone()
            reading = LogReader(report, has_details=may_read_details)
            details = DETAILS if may_read_details else "NULL"
            query = EVENTS.format(event=EVENT, details=details)
            cursor.execute("SELECT size, encode(root, 'hex'), note FROM audit_checkpoint ORDER BY size")
            reading.log.notes += cursor.fetchall()
            cursor.execute(ACTORS)
            actors = cursor.fetchall()
            cursor.execute("SELECT level, index, encode(hash, 'hex') FROM audit_node")
            reading.log.nodes += cursor.fetchall()
            reading.log.has_nodes = True
            late = now - timedelta(seconds=BACKLOG_SECONDS)
            times = {"late": late, "limit": now - LONGEST_UNSIGNED, "future": now + CLOCK_TOLERANCE}
            cursor.execute(UNPLACED, times)
            unplaced = cursor.fetchall()
        with connection.cursor(name="leaves") as leaves, connection.cursor() as events:
            leaves.itersize = BATCH
            leaves.execute("SELECT index, event_number, hash FROM audit_leaf ORDER BY index, event_number")
            while batch := leaves.fetchmany(BATCH):
                bodies = bodies_of(events, query, [number for _, number, _ in batch], report)
                for index, number, digest in batch:
                    event, beside = bodies.get(number, (None, None))
                    with reported(report):
                        reading.leaf(index, number, bytes(digest), event, beside)
            bodies = bodies_of(events, query, [number for number, *_ in unplaced[:MOST_FINDINGS]], report)
            # Of the others only those about names, and those that explain missing details.
            others = [number for number, *_ in unplaced[MOST_FINDINGS:]]
            erasures = [event for event, _ in bodies_of(events, query + ERASURES, others, report).values()]
        connection.rollback()
        newest = max((size for size, _, _ in reading.log.notes), default=0)
        is_recent = is_newest_recent(reading.log, [is_new for *_, is_new in unplaced], now)
        old = [number for number, _, is_old, _ in unplaced if is_old]
        waited, is_signed = watched(connection, old, None if is_recent else newest, wait)
    for number, is_pending, *_ in unplaced[:MOST_FINDINGS]:
        event, beside = bodies[number]
        # Events that got an index meanwhile were only delayed; events that are not queued get none.
        with reported(report):
            reading.unplaced(event, is_pending=is_pending, waited=waited.get(number, 0.0), details=beside)
    for event in erasures:
        with reported(report):
            reading.names.read(event)
            reading.erasures.read(event, is_missing=False)
    with reported(report):
        reading.names.compare(actors, report)
    reading.log.waiting = len(unplaced)
    if may_read_details:
        with reported(report):
            reading.erasures.conclude(report)
    else:
        report.remark("This role may not read the details of events; they were not compared.")
    Comparing(reading.log, report, pinned=pinned).compare(anchors, stores, is_recent=is_recent or is_signed)
    return report


def is_newest_recent(log: Log, waiting: Sequence[bool], now: datetime) -> bool:
    """Whether the events without a checkpoint are too new for one. Never in a log without any checkpoint.

    `waiting` states it of each event without an index. A time in the future is no new one: it would stay new for years.
    """
    if not log.notes:
        return False
    limit, future = now.astimezone(UTC) - LONGEST_UNSIGNED, now.astimezone(UTC) + CLOCK_TOLERANCE
    size, _, note = log.notes[-1]
    with suppress(InvalidCheckpointNote):
        if limit < SignedCheckpoint.parse(note).at.replace(tzinfo=UTC) <= future:
            return True
    oldest, newest = (microseconds(instant - BEGINNING) for instant in (limit, future))
    return all(oldest < at <= newest for at in log.times[size:]) and all(waiting)


def bodies_of(
    cursor: Any, query: str, numbers: Sequence[int], report: Report
) -> dict[int, tuple[dict[str, Any], dict[str, Any] | None]]:
    cursor.execute(query, [list(numbers)])
    found: dict[int, tuple[dict[str, Any], dict[str, Any] | None]] = {}
    for number, event, details in cursor:
        if number in found:
            report.add("duplicate", f"There are two events with the number {number}.")
        found[number] = (json.loads(event), json.loads(details) if details else None)
    return found


def watched(
    connection: Any, numbers: Sequence[int], signed_size: int | None, wait: Callable[[float], None]
) -> tuple[dict[int, float], bool]:
    """Events without an index after some seconds, with the seconds; and whether a checkpoint larger than `signed_size`
    was written meanwhile.

    An old event may have been committed just now, so its age alone means nothing.
    """
    still, is_signed, passed, step = list(numbers), signed_size is None, 0.0, 0.5
    while (still or not is_signed) and passed <= BACKLOG_SECONDS:
        wait(step)
        passed += step
        with connection.cursor() as cursor:
            if still:
                cursor.execute(STILL_UNPLACED, [still])
                still = [number for (number,) in cursor.fetchall()]
            if signed_size is not None:
                cursor.execute(NEWEST_CHECKPOINT)
                is_signed = is_signed or cursor.fetchone()[0] > signed_size
        connection.rollback()
    return dict.fromkeys(still, passed), is_signed


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="an export (.jsonl, may be gzipped) or the proof of an event"
    )
    parser.add_argument("--receipt", type=Path, help="a receipt, instead of a file; needs --key")
    parser.add_argument("--dsn", help="a PostgreSQL connection string, instead of a file")
    parser.add_argument(
        "--anchors",
        action="append",
        type=Path,
        default=[],
        help="checkpoints stored elsewhere: a file, or a folder of notes",
    )
    parser.add_argument("--key", action="append", default=[], help="a trusted public key")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    given = parser.parse_args(arguments)
    if [given.file, given.receipt, given.dsn].count(None) != 2:
        parser.error("give a file, --receipt or --dsn")
    if given.receipt and not given.key:
        parser.error("--receipt needs --key: anyone could sign a receipt with a key of their own")
    try:
        pinned = [Key.parse(text) for text in given.key]
        report: Report
        if given.receipt:
            report = verify_receipt_file(given.receipt, *anchors_of(given.anchors), pinned)
            text = receipt_text(report)
        else:
            report = (
                verify_dsn(given.dsn, given.anchors, pinned)
                if given.dsn
                else verify_file(given.file, *anchors_of(given.anchors), pinned)
            )
            text = report_text(report)
        sys.stdout.write(json.dumps(report.as_json(), indent=1) + "\n" if given.json else text)
        sys.stdout.flush()
    except (CannotRead, InvalidCheckpointNote, OSError, UnicodeError, MemoryError) as problem:
        sys.stderr.write(f"verifier: {printable(problem or type(problem).__name__)}\n")
        return CANNOT_READ
    return EXIT_STATUS[report.verdict]


def anchors_of(
    paths: Sequence[Path], recorded: Mapping[str, Set[int]] | None = None
) -> tuple[list[str], list[AnchorStore]]:
    """The notes of earlier exports, and two stores: that of a file anchor, which may have been continued in another
    file, and that of the single notes, from a bucket or a receiver. `recorded`: sizes that the log's database recorded
    as stored, by form.
    """
    notes: list[str] = []
    stores: dict[str, tuple[list[str], list[str]]] = {}
    """By form, the names and the notes."""
    for path in paths:
        files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        given, kind = list[str](), "note"
        for file in files:
            with opened(file) as lines:
                found, kind = read_anchors(lines)
            given += found
        if path.is_dir():
            kind = "note"
        if kind == "export":
            notes += given
        else:
            named, stored = stores.setdefault(kind, ([], []))
            named.append(str(path))
            stored += given
    return notes, [
        AnchorStore(", ".join(named), stored, recorded[kind] if recorded else None, is_lines=kind == "lines")
        for kind, (named, stored) in stores.items()
    ]


def verify_dsn(dsn: str, anchors: Sequence[Path], pinned: Sequence[Key]) -> Report:
    try:
        import psycopg
    except ImportError as missing:
        raise CannotRead("A database needs the package psycopg.") from missing
    try:
        with psycopg.connect(dsn) as connection:
            # Before the anchors, which may get more meanwhile.
            rows = connection.execute(RECORDED).fetchall() if anchors else []
        notes, stores = anchors_of(anchors, recorded_in(rows))
        return verify_database(lambda: psycopg.connect(dsn), anchors=notes, stores=stores, pinned=pinned)
    except psycopg.Error as problem:
        raise CannotRead(f"The database cannot be read: {str(problem).splitlines()[0]}") from problem


def recorded_in(rows: Sequence[tuple[str, list[int]]]) -> dict[str, Set[int]]:
    """Sizes that were stored, by form: of the file that was used last all, of each other kind of anchor the newest."""
    latest = {sink.partition(":")[0]: sizes for sink, sizes in rows}
    files = frozenset(latest.pop("file", ()))
    others = frozenset(sizes[-1] for sizes in latest.values())
    return {"lines": files or others, "note": others}


@contextmanager
def opened(path: Path) -> Iterator[Iterator[bytes]]:
    """The lines of a file that may be gzipped. Raises CannotRead for what no export is: a line or an expansion without
    measure, an incomplete archive.
    """
    with path.open("rb") as raw:
        is_compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not is_compressed:
            yield lines_of(raw, None)
            return
        try:
            with gzip.open(raw) as file:
                yield lines_of(file, MOST_LINE + MOST_EXPANSION * path.stat().st_size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            raise CannotRead(f"{path} is not a complete gzip file: {problem}") from problem


def lines_of(file: IO[bytes] | gzip.GzipFile, most: int | None) -> Iterator[bytes]:
    total = number = 0
    while line := file.readline(MOST_LINE + 1):
        number += 1
        total += len(line)
        if len(line) > MOST_LINE:
            raise CannotRead(f"Line {number} of the file is longer than {MOST_LINE:,} bytes.")
        if most is not None and total > most:
            raise CannotRead(f"The file expands to more than {MOST_EXPANSION} times its size, which no export does.")
        yield line


def verify_file(path: Path, anchors: Sequence[str], stores: Sequence[AnchorStore], pinned: Sequence[Key]) -> Report:
    with opened(path) as lines:
        first = next(lines, b"")
        # The proof of one event spans many lines; all other files have an object on the first line.
        if first.rstrip().endswith(b"}"):
            return verify_export(chain([first], lines), anchors=anchors, stores=stores, pinned=pinned)
        text = bytearray(first)
        for line in lines:
            text += line
            if len(text) > MOST_LINE:
                break
        try:
            proof = strict_json(bytes(text))
        except (ValueError, RecursionError) as problem:
            raise CannotRead(f"{path} is neither an export nor the proof of an event.") from problem
    every = [*anchors, *chain.from_iterable(store.notes for store in stores)]
    if isinstance(proof, dict) and proof.get("format") == EVENT_FORMAT:
        return verify_event(proof, anchors=every, pinned=pinned)
    if isinstance(proof, dict) and proof.get("format") == CONSISTENCY_FORMAT:
        return verify_consistency(proof, pinned=pinned)
    raise CannotRead(f"{path} is neither an export nor the proof of an event.")


def verify_receipt_file(
    path: Path, anchors: Sequence[str], stores: Sequence[AnchorStore], pinned: Sequence[Key]
) -> ReceiptReport:
    with path.open("rb") as file:
        text = file.read(MOST_RECEIPT + 1)
    every = [*anchors, *chain.from_iterable(store.notes for store in stores)]
    return verify_receipt(text, anchors=every, pinned=pinned)


VERDICTS = {
    "ok": "OK: nothing contradicts the log, and an anchor confirms it",
    "unanchored": "UNANCHORED: nothing contradicts the log, but no anchor confirms it; the owner of the database"
    " and the key could have rewritten it",
    "unsigned": "UNSIGNED: {unsigned:,} of {total:,} events have no valid signature and may be invented",
    "epoch": "EPOCH: the log continues from an older state, and earlier events were replaced; nothing else contradicts"
    " it",
    "broken": "BROKEN: the log, the file or an anchor was changed",
}


def report_text(report: Report) -> str:
    """The report for people, a line for each finding. Unsigned events come first."""
    total = report.signed + report.unsigned
    verdict = VERDICTS[report.verdict].format(unsigned=report.unsigned, total=total)
    lines = [f"{verdict}. Size {report.size:,}, root {report.root or 'none'}."]
    signed = "Signed:" if report.is_selection else "Signed up to"
    by = f" by key {report.signed_by}" if report.signed else ""
    lines.append(f"{signed} {report.signed:,} of {total:,} events{by}.")
    if report.anchored_size:
        lines.append(f"Anchored up to {report.anchored_size:,}.")
    return "\n".join([*lines, *finding_lines(report), *report.notes]) + "\n"


def finding_lines(report: Report) -> list[str]:
    lines = []
    for finding in report.findings:
        event = f" [event {finding.event}]" if finding.event else ""
        lines.append(f"  {finding.kind}: {finding.detail}{event}")
    if report.more:
        lines.append(f"  ... and {report.more:,} more.")
    return lines


if __name__ == "__main__":
    try:
        status = main()
    except Exception:
        # Python's own status of an error would mean that the log is broken.
        traceback.print_exc()
        status = CANNOT_READ
    sys.exit(status)
