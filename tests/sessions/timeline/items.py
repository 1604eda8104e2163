"""Stored items for tests, as a store would hand them out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sessions_app.items import Position, StoredItem
from sessions_app.stores.base import ITEM_HEAD_BYTES, ITEM_TAIL_BYTES

EXAMPLES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "data" / "sdk-items.jsonl").read_text(encoding="utf-8").splitlines()
]
"""One of each item that the SDK can store, and of those that it cannot but that are met all the same."""

FIRST_BATCH_AT = datetime(2026, 11, 17, 14, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Raw(str):
    """Text that is stored as it is, instead of a value as JSON."""


def session(*batches: Sequence[Any]) -> list[StoredItem]:
    """Items of one session, ids from 1, a minute between batches."""
    numbered = [(number, value) for number, batch in enumerate(batches) for value in batch]
    return [
        stored(value, id=str(index), written_at=FIRST_BATCH_AT + number * MINUTE)
        for index, (number, value) in enumerate(numbered, start=1)
    ]


def stored(value: Any, *, id: str = "1", written_at: datetime | None = FIRST_BATCH_AT) -> StoredItem:
    raw = str(value) if isinstance(value, Raw) else json.dumps(value, separators=(",", ":"))
    time = written_at.isoformat() if written_at else "~"
    return StoredItem(id, Position((time, int(id))), raw, len(raw), written_at)


def in_part(item: StoredItem) -> StoredItem:
    """The item as a page reads it when it is large: both ends, nothing of the middle."""
    return StoredItem(
        item.id,
        item.position,
        item.raw[:ITEM_HEAD_BYTES],
        item.byte_count,
        item.written_at,
        item.raw[-ITEM_TAIL_BYTES:],
    )


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def call(call_id: str, name: str = "get_weather", arguments: Any = "{}") -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}


def output(call_id: str, text: Any = "18 C") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def handoff(call_id: str, agent: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two items of a handoff: the call and its output."""
    name = f"transfer_to_{agent.lower().replace(' ', '_')}"
    return call(call_id, name), output(call_id, json.dumps({"assistant": agent}))


ENVELOPE: dict[str, Any] = {"__enc__": 1, "v": 1, "kid": "hkdf-v1", "payload": "gAAAAABrAO-iDemo"}
COMPACTION: dict[str, Any] = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAABo..."}
