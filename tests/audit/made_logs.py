"""Exports of logs that are made in memory: signed, without a database."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from memadmin.audit.transparency import notes, verifier
from memadmin.audit.transparency.notes import Checkpoint, SigningKey

Record = dict[str, Any]

ORIGIN = "memadmin/example"
KEY = SigningKey(ORIGIN, bytes(range(32)))
STRANGER = SigningKey(ORIGIN, bytes(range(2, 34)))
BEGUN = datetime(2024, 11, 21, 19, 30, tzinfo=UTC)
"""Before the reader's clock, wherever it is."""
ACTOR, ROLE = "7f4df1a6-6d4a-4ef0-9d57-000000000001", "7f4df1a6-6d4a-8ef0-9d57-000000000002"
PINNED = verifier.Key.parse(str(KEY.public))


def at(second: float) -> str:
    return (BEGUN + timedelta(seconds=second)).strftime(notes.TIME)


def id_of(number: int) -> str:
    return f"019aa7f3-1c00-7000-8000-{number:012x}"


def details_of(number: int) -> Record:
    return {"salt": bytes([number % 256]).hex() * 32, "text": json.dumps({"reason": f"reason {number}"})}


def event(number: int, *, has_details: bool = False, **columns: Any) -> Record:
    """The hashed form of an event, a second after the one before."""
    details = details_of(number)
    commitment = sha256(bytes.fromhex(details["salt"]) + details["text"].encode()).hexdigest()
    made = {"v": 1, "number": number, "id": id_of(number), "type": "test.tried", "at": at(number)}
    made |= {"actor_kind": "person", "actor": ACTOR, "role": ROLE, "object_kind": None, "object": None}
    made |= {"subject": None, "shown": [], "outcome": "succeeded", "reason": "", "counters": {"items": number}}
    return made | {"cause": None, "commitment": commitment if has_details else None} | columns


def leaf(index: int, body: Record, details: Record | None = None) -> Record:
    record = {"index": index, "leaf": verifier.leaf_hash(body).hex(), "number": body["number"], "event": body}
    return record if details is None else record | {"details": details}


def checkpoint(
    bodies: Sequence[Record],
    key: SigningKey = KEY,
    *,
    epoch: int = 1,
    replaced: tuple[int, bytes] | None = None,
    before: SigningKey | None = None,
) -> str:
    """The signed note of a log of these events, half a second after the last; `before` signs a new key in."""
    root = verifier.Tree().extend(b"".join(map(verifier.leaf_hash, bodies))).root()
    signed_at = BEGUN + timedelta(seconds=bodies[-1]["number"] + 0.5)
    stated = Checkpoint(key.name, len(bodies), root, signed_at, key.public, epoch, replaced)
    return notes.sign(stated, key, *([before] if before else []))


def checkpoint_record(note: str) -> Record:
    stated = notes.verified(note)
    return {"checkpoint": {"size": stated.size, "root": stated.root.hex(), "note": note}}


def waiting(body: Record, **values: Any) -> Record:
    return {"waiting": {"is_pending": True, "seconds": 0} | values, "event": body}


def bodies(count: int, **columns: Any) -> list[Record]:
    """Events of which each third has details."""
    return [event(number, has_details=number % 3 == 0, **columns) for number in range(1, count + 1)]


def log_of(events: Sequence[Record], signed: Sequence[str], *, origin: str = ORIGIN, anchored: int = 0) -> list[Record]:
    """The records of an export with details."""
    head = {"format": verifier.LOG_FORMAT, "origin": origin, "exported_at": at(3600), "size": len(events)}
    records = [head | {"details": True}]
    for index, body in enumerate(events):
        details = details_of(body["number"]) if body["commitment"] else None
        records.append(leaf(index, body, details))
    records += map(checkpoint_record, signed)
    if anchored:
        stored = {"sink": "file:/anchor", "size": anchored, "at": at(3000), "receipt": "anchor, byte 900"}
        records.append({"anchored": stored})
    return [*records, {"end": {"leaves": len(events)}}]


def signed_log(size: int = 12, every: int = 4, key: SigningKey = KEY) -> tuple[list[Record], list[str]]:
    """The records of a log that is signed to its end, and its notes, all of which are anchored."""
    events = bodies(size)
    signed = [checkpoint(events[:end], key) for end in range(every, size + 1, every)]
    return log_of(events, signed, anchored=size), signed


def text_of(records: Iterable[Record]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def verify(
    records: Iterable[Record],
    anchors: Sequence[str] = (),
    *,
    pinned: Sequence[verifier.Key] = (PINNED,),
    **options: Any,
) -> verifier.Report:
    lines = text_of(records).splitlines(keepends=True)
    return verifier.verify_export(lines, anchors=anchors, pinned=pinned, **options)


def store_of(signed: Sequence[str], name: str = "anchor.jsonl") -> verifier.AnchorStore:
    return verifier.AnchorStore(name, signed)


def at_size(note: str, size: int, key: SigningKey) -> str:
    """The same checkpoint of another size, signed by this key."""
    return notes.sign(replace(notes.Checkpoint.parse(notes.Note.parse(note).text), size=size), key)
