"""Receipts that are made in memory: signed, without a database."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

from memadmin.audit.log.ids import ref
from memadmin.audit.transparency import receipts, verifier
from memadmin.audit.transparency.notes import SigningKey
from tests.audit.made_logs import KEY, Record, bodies, checkpoint

REQUEST, SUBJECT = "6d1f4c0e-0c1b-4c55-9a53-000000000001", "6d1f4c0e-0c1b-4c55-9a53-000000000002"
REQUESTER, APPROVER = "6d1f4c0e-0c1b-4c55-9a53-000000000003", "6d1f4c0e-0c1b-4c55-9a53-000000000004"

PAYLOAD: dict[str, Any] = {
    "request": REQUEST,
    "number": 12,
    "kind": "erasure",
    "outcome": "exceptions",
    "subject": SUBJECT,
    "times": {"received_on": "2026-11-01", "completed_at": "2026-11-21T19:30:00.123456Z"},
    "actors": [{"role": "requester", "actor": REQUESTER}, {"role": "approver", "actor": APPROVER}],
    "counts": {"sessions/main": 50, "sessions/Bots_2": 1950, "memories": 31},
    "held": {"sessions/main": 4},
    "exceptions": [{"code": "store_unreachable", "place": "sessions/old-bots", "count": 7}],
    "out_of_reach": [
        {"code": "backup", "place": "database", "until": "2026-12-21"},
        {"code": "tracing_export", "place": "provider", "until": None},
    ],
    "scans": [{"at": "2026-11-21T19:31:00.000000Z", "rows_read": 5_000_000, "found": 0}],
    "versions": {"code": "0.1.0", "data_map": "2026-11-20", "policy": None},
    "backups_until": "2026-12-21",
}

INDEX = 2
"""Of the event in a log of four."""


def changed(**members: Any) -> dict[str, Any]:
    return deepcopy(PAYLOAD) | members


def log_for(payload: dict[str, Any]) -> list[Record]:
    """Four events, the third of which names the receipt."""
    events = bodies(4)
    events[INDEX]["shown"] = [str(ref(receipts.FORMAT, verifier.canonical(payload).decode()))]
    return events


def proof_in(events: list[Record], index: int, note: str) -> Record:
    """The members of a receipt that prove an event in a log of four."""
    hashes = [verifier.leaf_hash(event) for event in events]
    others = hashes[2:] if index < 2 else hashes[:2]
    path = [hashes[index ^ 1], verifier.Tree().extend(b"".join(others)).root()]
    return {"event": events[index], "index": index, "path": [step.hex() for step in path], "checkpoint": note}


def receipt(payload: dict[str, Any] = PAYLOAD, *, key: SigningKey = KEY, **members: Any) -> Record:
    """A receipt without its signature."""
    events = log_for(payload)
    made = {"format": receipts.FORMAT, "id": events[INDEX]["shown"][0], "payload": payload, "key": str(key.public)}
    return deepcopy(made | proof_in(events, INDEX, checkpoint(events, key)) | members)


def signed(unsigned: Record, key: SigningKey = KEY, *, context: bytes = receipts.CONTEXT) -> bytes:
    signature = base64.b64encode(key.signature(context + verifier.canonical(unsigned))).decode()
    return verifier.canonical(unsigned | {"signature": signature})
