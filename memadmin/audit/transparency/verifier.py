#!/usr/bin/env python3
"""Stand-alone verifier of memadmin audit logs: checks a log without memadmin and names each kind of manipulation.

    python verifier.py export.jsonl --anchors anchor.jsonl --key NAME+HASH+KEY
    python verifier.py event.json --anchors anchor.jsonl --key NAME+HASH+KEY
    python verifier.py --dsn postgresql://auditor@host/database --anchors anchor.jsonl

The first form reads a whole log or a selection of events, the second the proof of one event, the third a database, in
one read-only transaction. `--anchors` (may be repeated) names files with checkpoints that were stored elsewhere: JSON
Lines as memadmin's file anchor writes them, or single notes; without anchors, a log that was rewritten and signed again
looks valid. `--key` pins the key that must have signed, directly or by signing in its successor.

Needs Python 3.11 with the package `cryptography`, and `psycopg` for a database. This single file uses no code of
memadmin: its results do not depend on the program that wrote the log.

Exit status: 0 when nothing contradicts the log, 1 when it is broken, 2 when it cannot be read.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
import time
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from heapq import merge
from itertools import chain, combinations, pairwise, product
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

LOG_FORMAT = "memadmin-audit-log/1"
EVENT_FORMAT = "memadmin-audit-event/1"
CONSISTENCY_FORMAT = "memadmin-audit-consistency/1"

TIME = "%Y-%m-%dT%H:%M:%S.%fZ"
CLOCK_TOLERANCE = timedelta(seconds=5)
"""A connection may be delayed between taking its number and reading the clock."""
BACKLOG_SECONDS = 10
MOST_FINDINGS = 1000
MOST_HOLES = 100_000
SORTED = 500_000
MOST_TRIALS = 2_000_000
"""Maximum of hashes to explain one damaged part of the log: some seconds."""

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
    "rewrite": "the log was rewritten and signed again",
    "restored_backup": "an older state of the log was restored",
    "backlog": "events wait for an index",
    "forged_checkpoint": "a checkpoint differs from the signed one",
    "unknown_key": "a checkpoint is signed by an untrusted key",
    "damaged_node": "an inner hash of the stored tree is wrong",
    "bad_proof": "the event is not in the signed log",
    "incomplete_file": "the file ends early",
    "unreadable": "a part cannot be read",
    "epoch": "after a restore the log continued from an older state, according to its signed record",
}


class CannotRead(Exception):
    """The input is not a log; the message is a sentence."""


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
    """Result of a verification."""

    size: int = 0
    root: str = ""
    findings: list[LogFinding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Information that contradicts nothing."""
    anchored_size: int = 0
    """The largest size whose root an anchor confirmed."""
    more: int = 0
    """Findings that are not listed."""

    @property
    def verdict(self) -> str:
        if any(finding.kind != "epoch" for finding in self.findings):
            return "broken"
        return "ok" if self.anchored_size else "unanchored"

    def add(self, kind: str, detail: str, event: object = None) -> None:
        assert kind in KINDS
        if len(self.findings) >= MOST_FINDINGS:
            self.more += 1
            return
        self.findings.append(LogFinding(kind, None if event is None else str(event), detail))

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "size": self.size,
            "root": self.root,
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

    def is_signed_by(self, key: Key) -> bool:
        for name, hint, signature in self.signatures:
            if (name, hint) == (key.name, key.hint):
                try:
                    Ed25519PublicKey.from_public_bytes(key.data).verify(signature, self.text.encode())
                except (InvalidSignature, ValueError):
                    continue
                return True
        return False


def vouched_for(checkpoints: Iterable[SignedCheckpoint], pinned: Sequence[Key]) -> set[bytes]:
    """The pinned keys, and those linked to them by notes with both signatures."""
    every = list(checkpoints)
    handovers = [found for found in every if len(found.signatures) > 1]
    named = {found.key.data: found.key for found in every}
    known = {key.data: key for key in pinned}
    grows = True
    while grows:
        grows = False
        for found in handovers:
            signers = [key for key in {**named, **known}.values() if found.is_signed_by(key)]
            if any(key.data in known for key in signers):
                fresh = {key.data: key for key in signers if key.data not in known}
                grows |= bool(fresh)
                known |= fresh
    return set(known)


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

    @property
    def size(self) -> int:
        return len(self.numbers)


@dataclass(frozen=True)
class Unplaced:
    """An event without a leaf."""

    number: int
    id: str
    hash: bytes
    is_pending: bool
    waited: float
    """Seconds for which it was observed without an index."""


class LogReader:
    """Reads the records of a log one by one, and checks each on its own."""

    def __init__(self, report: Report) -> None:
        self.log = Log()
        self.report = report
        self._expected = 0
        self._highest = (-1, "")
        self.erased_details = 0

    def leaf(self, index: int, number: int, digest: bytes, event: dict[str, Any] | None, details: Any = None) -> None:
        log = self.log
        if index in log.holes:
            log.holes.remove(index)
            log.turns.append(index)
        elif index != self._expected and not self._is_possible(index, number, digest):
            return
        if index == self._expected:
            log.leaves += bytes(32)
            log.numbers.append(-1)
            log.ids.append(0)
            self._expected += 1
        log.leaves[32 * index : 32 * index + 32] = digest
        log.numbers[index] = number
        if event is None:
            self.report.add("deletion", f"Event number {number} is missing; its leaf at {index} still exists.")
            return
        self._event(index, number, digest, event)
        if event.get("commitment") is not None or details is not None:
            self.details(event, details)

    def unplaced(self, event: dict[str, Any], *, is_pending: bool, waited: float, details: Any = None) -> None:
        found = Unplaced(int(event["number"]), str(event["id"]), leaf_hash(event), is_pending, waited)
        self.log.unplaced.append(found)
        if event.get("commitment") is not None or details is not None:
            self.details(event, details)

    def details(self, event: dict[str, Any], details: Any) -> None:
        """Compares the details of an event with its commitment; erased details are not a finding."""
        commitment = event.get("commitment")
        if details is None:
            self.erased_details += 1
            return
        try:
            found = sha256(bytes.fromhex(details["salt"]) + str(details["text"]).encode()).hexdigest()
        except (KeyError, TypeError, ValueError):
            found = ""
        if found != commitment:
            self.report.add("edited_details", "The details do not match the event's commitment.", event.get("id"))

    def _event(self, index: int, number: int, digest: bytes, event: dict[str, Any]) -> None:
        log, id_ = self.log, str(event.get("id", ""))
        with suppress(ValueError, OverflowError):
            log.ids[index] = int(id_[-17:].replace("-", ""), 16)
        found = leaf_hash(event)
        if found != digest or event.get("number") != number:
            log.differing[index] = (found, id_)
        at = str(event.get("at", ""))
        highest, highest_at = self._highest
        if number > highest:
            if at < highest_at and self._apart(at, highest_at):
                self.report.add(
                    "clock_step_back",
                    f"The event at {index} has the time {at}, but the event numbered before it has the later"
                    f" time {highest_at}.",
                    id_,
                )
            self._highest = (number, at)
        elif at > highest_at and self._apart(highest_at, at):
            self.report.add(
                "clock_step_back",
                f"The event at {index} has the time {at}, but an event numbered after it has {highest_at}.",
                id_,
            )

    @staticmethod
    def _apart(earlier: str, later: str) -> bool:
        try:
            between = datetime.strptime(later, TIME) - datetime.strptime(earlier, TIME)  # noqa: DTZ007  # both are UTC
        except ValueError:
            return True
        return between > CLOCK_TOLERANCE

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
            log.leaves += bytes(32)
            log.numbers.append(-1)
            log.ids.append(0)
        log.turns.append(index)
        self._expected = index
        return True


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
        self.turned = displaced(log.turns)
        """Indexes whose leaf was read out of order."""
        self.used: set[int] = set()
        """Numbers of events without a leaf that an explanation covers."""
        self.trials = MOST_TRIALS

    def compare(self, anchors: Sequence[str] = ()) -> None:
        """Fills in the report."""
        self._look_for_duplicates()
        self._read_checkpoints()
        known = self._read_anchors(anchors)
        is_whole = self._walk({checkpoint.size for checkpoint in known})
        self._name_changed_bodies()
        self._name_strays()
        if is_whole:
            self._look_for_a_cut()
        self._compare_with_anchors(known)
        self._look_at_unplaced()
        self.report.size = self.log.size
        self.report.root = self.roots.get(self.log.size, b"").hex()

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
        self.checkpoints.sort(key=lambda found: found.size)
        self._look_at_keys()
        before: SignedCheckpoint | None = None
        for found in self.checkpoints:
            if before and found.origin != before.origin:
                self.report.add(
                    "forged_checkpoint", f"The checkpoint of size {found.size} belongs to another log, {found.origin}."
                )
            if before and found.at + CLOCK_TOLERANCE < before.at:
                self.report.add(
                    "clock_step_back",
                    f"The checkpoint of size {found.size} was signed before the one of {before.size}.",
                )
            if before and found.epoch != before.epoch and found.replaced is None:
                self.report.add("forged_checkpoint", f"Epoch {found.epoch} begins at {found.size} without a record.")
            if found.replaced:
                self.report.add(
                    "epoch",
                    f"Epoch {found.epoch} begins at {found.size} ({found.at:%Y-%m-%d %H:%M} UTC); the log was anchored"
                    f" up to {found.replaced[0]} before.",
                )
            before = found

    def _look_at_keys(self) -> None:
        pinned = list(self.pinned)
        if not pinned and self.checkpoints:
            pinned = [self.checkpoints[0].key]
            self.report.notes.append(f"No key was pinned; the log itself names {pinned[0]}.")
        known = vouched_for(self.checkpoints, pinned)
        for found in self.checkpoints:
            if found.key.data not in known:
                known.add(found.key.data)
                self.report.add(
                    "unknown_key", f"From size {found.size} on checkpoints are signed by an untrusted key, {found.key}."
                )

    def _read_anchors(self, notes: Sequence[str]) -> list[SignedCheckpoint]:
        """Checkpoints from anchors. Their signatures are checked only where they decide a result."""
        found, unreadable = [], 0
        for note in notes:
            try:
                found.append(SignedCheckpoint.parse(note, is_checked=False))
            except InvalidCheckpointNote:
                unreadable += 1
        if unreadable:
            self.report.notes.append(f"{unreadable} of the anchors are not signed checkpoints and were ignored.")
        return found

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
        del log.leaves[32 * first : 32 * (first + count)]
        del log.numbers[first : first + count]
        del log.ids[first : first + count]
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
                    self.log.leaves[32 * index : 32 * index] = event.hash
                    self.log.numbers.insert(index, event.number)
                    self.log.ids.insert(index, 0)
                    return True
        return False

    def _was_deleted_and_is_short(self, good: Tree, checkpoint: SignedCheckpoint) -> bool:
        """Leaves and events were removed, and the log is shorter. Reports it; later events cannot be compared."""
        largest = self.checkpoints[-1].size
        if self.log.size < largest:
            self.report.add(
                "deletion",
                f"{largest - self.log.size} leaves are missing, the first between {good.size} and {checkpoint.size};"
                " the gap was closed.",
            )
        return False

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
                    del log.leaves[32 * index :], log.numbers[index:], log.ids[index:]
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
            del log.leaves[-32:], log.numbers[-1:], log.ids[-1:]

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

    def _compare_with_anchors(self, known: Sequence[SignedCheckpoint]) -> None:
        origin = self.checkpoints[-1].origin if self.checkpoints else self.log.origin
        signed_size = max((found.size for found in self.checkpoints), default=0)
        confirming: list[SignedCheckpoint] = []
        contradicting: list[SignedCheckpoint] = []
        beyond: list[SignedCheckpoint] = []
        for anchor in known:
            later = next((each for each in self.checkpoints if each.epoch > anchor.epoch and each.replaced), None)
            if later and later.replaced and anchor.size >= later.size:
                if anchor.size > later.replaced[0]:
                    beyond.append(anchor)
            elif anchor.origin != origin:
                contradicting.append(anchor)
            elif anchor.size > max(self.log.size, signed_size):
                beyond.append(anchor)
            elif anchor.size <= self.whole_size:
                (confirming if self.roots[anchor.size] == anchor.root else contradicting).append(anchor)
        for anchor in sorted(confirming, key=lambda each: -each.size):
            if anchor.is_signed_by(anchor.key):
                self.report.anchored_size = anchor.size
                break
        if false := next((each for each in contradicting if each.is_signed_by(each.key)), None):
            if false.origin != origin:
                what = f"belongs to the log {false.origin}, and this one is {origin or 'not signed'}"
            else:
                what = f"has another root for size {false.size}"
            self.report.add(
                "rewrite",
                f"An anchor of {false.at:%Y-%m-%d %H:%M} UTC {what}: the log was rewritten and signed again.",
            )
        signed_beyond = [each for each in beyond if each.is_signed_by(each.key)]
        if signed_beyond:
            largest = max(signed_beyond, key=lambda each: each.size)
            self.report.add(
                "restored_backup",
                f"The size regressed from {largest.size} to {self.log.size}: an anchor of"
                f" {largest.at:%Y-%m-%d %H:%M} UTC has the larger size.",
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


def verify_export(lines: Iterable[str | bytes], *, anchors: Sequence[str] = (), pinned: Sequence[Key] = ()) -> Report:
    """Verifies an exported log, or events with their proofs, one a line. Raises CannotRead."""
    records = enumerate(lines, 1)
    head = parsed(*next(records, (1, "")))
    if head.get("format") == EVENT_FORMAT:
        following = (parsed(number, line) for number, line in records)
        return verify_selection(chain([head], following), anchors=anchors, pinned=pinned)
    if head.get("format") != LOG_FORMAT:
        raise CannotRead("The file is not a memadmin audit log: its first line has no known format.")
    report = Report()
    reading = LogReader(report)
    reading.log.origin = str(head.get("origin", ""))
    ended: dict[str, Any] | None = None
    for number, line in records:
        record = parsed(number, line)
        try:
            if "index" in record:
                reading.leaf(
                    whole_number(record["index"]),
                    whole_number(record["number"]),
                    hash_of(record["leaf"]),
                    event_of(record),
                    record.get("details"),
                )
            elif "checkpoint" in record:
                found = record["checkpoint"]
                reading.log.notes.append((whole_number(found["size"]), str(found["root"]), str(found["note"])))
            elif "waiting" in record:
                waited = float(record["waiting"]["seconds"])
                is_pending = bool(record["waiting"]["is_pending"])
                event = event_of(record)
                whole_number(event["number"] if event else None)
                reading.unplaced(event or {}, is_pending=is_pending, waited=waited, details=record.get("details"))
            elif "end" in record:
                ended = record["end"]
        except (KeyError, TypeError, ValueError) as problem:
            report.add("unreadable", f"Line {number} is not in the format of a log: {problem!r}.")
    if ended is None:
        report.add("incomplete_file", "The file has no end record: it was not written or copied completely.")
    if reading.erased_details:
        report.notes.append(f"Details of {reading.erased_details} events were erased, or are not in the export.")
    Comparing(reading.log, report, pinned=pinned).compare(anchors)
    return report


def parsed(number: int, line: str | bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CannotRead(f"Line {number} of the file is not a JSON object.")
    return found


def whole_number(value: object) -> int:
    if type(value) is not int or not -(2**63) <= value < 2**63:
        raise ValueError("a number is not an integer of 64 bits")
    return value


def event_of(record: dict[str, Any]) -> dict[str, Any] | None:
    event = record["event"]
    if event is not None and not isinstance(event, dict):
        raise ValueError("an event is not an object")
    return event


def hash_of(text: str) -> bytes:
    data = bytes.fromhex(text)
    if len(data) != 32:
        raise ValueError("a hash has 64 digits")
    return data


def verify_selection(
    records: Iterable[dict[str, Any]], *, anchors: Sequence[str] = (), pinned: Sequence[Key] = ()
) -> Report:
    """Verifies events with a proof each. A selection cannot show whether events were left out."""
    report, proving = Report(), Proving(anchors, pinned)
    waiting = 0
    for record in records:
        if record.get("checkpoint") is None:
            waiting += 1
        else:
            proving.prove(record, report)
    proving.conclude(report)
    report.notes.append(f"This is a selection of {proving.count} events; it cannot show whether others were left out.")
    if waiting:
        report.notes.append(f"{waiting} events had no signed index yet when they were exported.")
    return report


def verify_event(proof: dict[str, Any], *, anchors: Sequence[str] = (), pinned: Sequence[Key] = ()) -> Report:
    """Verifies one event with its proof."""
    report, proving = Report(), Proving(anchors, pinned)
    proving.prove(proof, report)
    proving.conclude(report)
    return report


class Proving:
    """Checks events against the checkpoints in their proofs, each of which is checked once."""

    def __init__(self, anchors: Sequence[str], pinned: Sequence[Key]) -> None:
        self.anchors = anchors
        self.pinned = pinned
        self.count = 0
        self.checkpoints: dict[str, SignedCheckpoint] = {}
        self._refused: dict[str, InvalidCheckpointNote] = {}

    def prove(self, proof: dict[str, Any], report: Report) -> None:
        event = proof.get("event")
        id_ = event.get("id") if isinstance(event, dict) else None
        self.count += 1
        try:
            checkpoint = self._checkpoint(str(proof["checkpoint"]))
            path = [hash_of(step) for step in proof["path"]]
            event = event_of(proof) or {}
            root = root_by_inclusion(whole_number(proof["index"]), checkpoint.size, leaf_hash(event), path)
        except InvalidCheckpointNote as problem:
            report.add("forged_checkpoint", f"The checkpoint of the proof is invalid: {problem}.", id_)
            return
        except (KeyError, TypeError, ValueError):
            report.add("unreadable", "The proof has no valid event, index, path or checkpoint.", id_)
            return
        if root != checkpoint.root:
            report.add("bad_proof", f"The event does not lead to the root signed for size {checkpoint.size}.", id_)
        if proof.get("details") is not None:
            LogReader(report).details(proof["event"], proof["details"])

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
        if not found:
            return
        report.size, report.root = found[-1].size, found[-1].root.hex()
        if not self.pinned:
            report.notes.append(f"No key was pinned; the proof itself names {found[-1].key}.")
        known = vouched_for(found, self.pinned or [each.key for each in found])
        for each in found:
            if each.key.data not in known:
                report.add("unknown_key", f"The checkpoint of size {each.size} is signed by {each.key}.")
            compare_checkpoint(each, report, self.anchors)
        if self.anchors and not report.anchored_size:
            report.notes.append(f"No anchor has size {found[-1].size}. Request a proof against an anchored checkpoint.")


def compare_checkpoint(ours: SignedCheckpoint, report: Report, anchors: Sequence[str]) -> None:
    """Compares a checkpoint with the anchors: confirmed, or another root for its size."""
    for note in anchors:
        try:
            known = SignedCheckpoint.parse(note, is_checked=False)
        except InvalidCheckpointNote:
            continue
        if (known.origin, known.epoch, known.size) != (ours.origin, ours.epoch, ours.size):
            continue
        if known.is_signed_by(known.key):
            if known.root == ours.root:
                report.anchored_size = max(report.anchored_size, ours.size)
            else:
                report.add("rewrite", f"An anchor has another root for size {ours.size}.")


def verify_consistency(proof: dict[str, Any], *, pinned: Sequence[Key] = ()) -> Report:
    """Verifies that the log of one checkpoint begins with the log of another."""
    report = Report()
    try:
        old, new = SignedCheckpoint.parse(str(proof["old"])), SignedCheckpoint.parse(str(proof["new"]))
        path = [hash_of(step) for step in proof["path"]]
    except (InvalidCheckpointNote, KeyError, TypeError, ValueError) as problem:
        raise CannotRead(f"The proof cannot be read: {problem}.") from problem
    report.size, report.root = new.size, new.root.hex()
    if not consistency_holds(old.size, old.root, new.size, new.root, path):
        report.add("rewrite", f"The log of size {new.size} does not begin with the one of size {old.size}.")
    known = vouched_for([old, new], pinned or [old.key])
    for found in (old, new):
        if found.key.data not in known:
            report.add("unknown_key", f"The checkpoint of size {found.size} is signed by {found.key}.")
    return report


def notes_in(text: str) -> list[str]:
    """The notes of a file: one note, or JSON Lines with notes in them: a file anchor, an earlier export.

    Lines left incomplete by a crash are skipped.
    """
    if not text.lstrip().startswith("{"):
        return [text]
    notes = []
    for line in text.splitlines():
        if '"note"' not in line and '"checkpoint"' not in line:
            continue
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found = record.get("checkpoint", record) if isinstance(record, dict) else None
        note = found.get("note") if isinstance(found, dict) else found
        if isinstance(note, str):
            notes.append(note)
    return notes


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
UNPLACED = """
SELECT event.number, pending.number IS NOT NULL, clock_timestamp() - event.at > interval '{seconds} seconds'
FROM audit_event AS event LEFT JOIN audit_pending AS pending USING (number)
WHERE NOT EXISTS (SELECT FROM audit_leaf AS leaf WHERE leaf.event_number = event.number)
ORDER BY 1
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
    pinned: Sequence[Key] = (),
    wait: Callable[[float], None] = time.sleep,
) -> Report:
    """Verifies the log in a database, in one snapshot. `connect` returns a new psycopg connection.

    A read-only role needs SELECT on the audit tables; without it on audit_detail, details are not compared.
    """
    report = Report()
    reading = LogReader(report)
    with connect() as connection:
        connection.rollback()
        connection.isolation_level = 3  # REPEATABLE READ
        connection.read_only = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT has_table_privilege('audit_detail', 'SELECT')")
            may_read_details = cursor.fetchone()[0]
            details = DETAILS if may_read_details else "NULL"
            query = EVENTS.format(event=EVENT, details=details)
            cursor.execute("SELECT size, encode(root, 'hex'), note FROM audit_checkpoint ORDER BY size")
            reading.log.notes += cursor.fetchall()
            cursor.execute("SELECT level, index, encode(hash, 'hex') FROM audit_node")
            reading.log.nodes += cursor.fetchall()
            reading.log.has_nodes = True
            cursor.execute(UNPLACED.format(seconds=BACKLOG_SECONDS))
            unplaced = cursor.fetchall()
        with connection.cursor(name="leaves") as leaves, connection.cursor() as events:
            leaves.itersize = BATCH
            leaves.execute("SELECT index, event_number, hash FROM audit_leaf ORDER BY index, event_number")
            while batch := leaves.fetchmany(BATCH):
                bodies = bodies_of(events, query, [number for _, number, _ in batch], report)
                for index, number, digest in batch:
                    event, beside = bodies.get(number, (None, None))
                    reading.leaf(index, number, bytes(digest), event, beside if may_read_details else None)
            bodies = bodies_of(events, query, [number for number, _, _ in unplaced[:MOST_FINDINGS]], report)
        connection.rollback()
        waited = watched(connection, [number for number, _, is_old in unplaced if is_old], wait)
    for number, is_pending, _ in unplaced[:MOST_FINDINGS]:
        event, beside = bodies[number]
        # Events that got an index meanwhile were only delayed; events that are not queued get none.
        reading.unplaced(event, is_pending=is_pending, waited=waited.get(number, 0.0), details=beside)
    if not may_read_details:
        report.notes.append("This role may not read the details of events; they were not compared.")
    elif reading.erased_details:
        report.notes.append(f"Details of {reading.erased_details} events were erased.")
    Comparing(reading.log, report, pinned=pinned).compare(anchors)
    return report


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


def watched(connection: Any, numbers: Sequence[int], wait: Callable[[float], None]) -> dict[int, float]:
    """Events without an index after some seconds, and the number of seconds.

    An old event may have been committed just now, so its age alone means nothing.
    """
    if not numbers:
        return {}
    still, passed, step = list(numbers), 0.0, 0.5
    while still and passed <= BACKLOG_SECONDS:
        wait(step)
        passed += step
        with connection.cursor() as cursor:
            cursor.execute(STILL_UNPLACED, [still])
            still = [number for (number,) in cursor.fetchall()]
        connection.rollback()
    return dict.fromkeys(still, passed)


# The command


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter, epilog=__doc__
    )
    parser.add_argument(
        "file", nargs="?", type=Path, help="an export (.jsonl, may be gzipped) or the proof of an event"
    )
    parser.add_argument("--dsn", help="a PostgreSQL connection string, instead of a file")
    parser.add_argument(
        "--anchors", action="append", type=Path, default=[], help="a file with checkpoints stored elsewhere"
    )
    parser.add_argument("--key", action="append", default=[], help="a trusted public key")
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    given = parser.parse_args(arguments)
    if (given.file is None) == (given.dsn is None):
        parser.error("give a file, or --dsn")
    try:
        pinned = [Key.parse(text) for text in given.key]
        anchors = [note for path in given.anchors for note in notes_in(path.read_text(encoding="utf-8"))]
        report = verify_dsn(given.dsn, anchors, pinned) if given.dsn else verify_file(given.file, anchors, pinned)
    except (CannotRead, InvalidCheckpointNote, OSError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"verifier: {problem}\n")
        return 2
    sys.stdout.write(json.dumps(report.as_json(), indent=1) + "\n" if given.json else report_text(report))
    return 1 if report.verdict == "broken" else 0


def verify_dsn(dsn: str, anchors: Sequence[str], pinned: Sequence[Key]) -> Report:
    try:
        import psycopg
    except ImportError as missing:
        raise CannotRead("A database needs the package psycopg.") from missing
    try:
        return verify_database(lambda: psycopg.connect(dsn), anchors=anchors, pinned=pinned)
    except psycopg.Error as problem:
        raise CannotRead(f"The database cannot be read: {str(problem).splitlines()[0]}") from problem


def verify_file(path: Path, anchors: Sequence[str], pinned: Sequence[Key]) -> Report:
    with path.open("rb") as raw:
        is_compressed = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path) if is_compressed else path.open("rb") as file:
        # The proof of one event spans many lines; all other files have an object on the first line.
        if file.readline().rstrip().endswith(b"}"):
            file.seek(0)
            return verify_export(file, anchors=anchors, pinned=pinned)
        file.seek(0)
        try:
            proof = json.loads(file.read())
        except (ValueError, RecursionError) as problem:
            raise CannotRead(f"{path} is neither an export nor the proof of an event.") from problem
    if isinstance(proof, dict) and proof.get("format") == EVENT_FORMAT:
        return verify_event(proof, anchors=anchors, pinned=pinned)
    if isinstance(proof, dict) and proof.get("format") == CONSISTENCY_FORMAT:
        return verify_consistency(proof, pinned=pinned)
    raise CannotRead(f"{path} is neither an export nor the proof of an event.")


def report_text(report: Report) -> str:
    """The report for people, a line for each finding."""
    verdicts = {
        "ok": "OK: nothing contradicts the log, and an anchor confirms it",
        "unanchored": "UNANCHORED: nothing contradicts the log, but no anchor confirms it; the owner of the database"
        " and the key could have rewritten it",
        "broken": "BROKEN: the log differs from the signed checkpoints",
    }
    lines = [verdicts[report.verdict] + f". Size {report.size:,}, root {report.root}."]
    if report.anchored_size:
        lines.append(f"Anchored up to {report.anchored_size:,}.")
    for finding in report.findings:
        event = f" [event {finding.event}]" if finding.event else ""
        lines.append(f"  {finding.kind}: {finding.detail}{event}")
    if report.more:
        lines.append(f"  … and {report.more:,} more.")
    return "\n".join(lines + report.notes) + "\n"


if __name__ == "__main__":
    sys.exit(main())
