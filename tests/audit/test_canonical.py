"""The bytes of a leaf, against a file that is never written again: old logs must verify with the code of any year."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from uuid import UUID

import pytest
from django.conf import settings

from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency.canonical import leaf_bytes, leaf_of

GOLDEN = settings.CHECKOUT_DIR / "tests" / "data" / "audit-leaves-v1.jsonl"


def ref(number: int) -> UUID:
    return UUID(int=(0xA5 << 120) + number)


BARE = AuditEvent(
    number=1,
    id=UUID("019aa7f3-1c00-7000-8000-000000000001"),
    type="user.signed_in",
    at=datetime(2026, 11, 21, 19, 30, tzinfo=UTC),
    actor_kind="person",
    actor_ref=ref(1),
    role_ref=ref(2),
    shown=[],
    outcome="succeeded",
    reason_code="",
    counters={},
)
FULL = AuditEvent(
    number=900_719_925_474_099,
    id=UUID("019aa7f3-1c00-7fff-bfff-ffffffffffff"),
    type="session.exported",
    # Elsewhere, and a minute before midnight there: the leaf says UTC.
    at=datetime(2026, 11, 21, 23, 59, 59, 123456, tzinfo=timezone(timedelta(hours=2))),
    actor_kind="agent",
    actor_ref=ref(3),
    role_ref=ref(4),
    object_kind="sessions_app.sessionrecord",
    object_ref=ref(5),
    subject_ref=ref(6),
    shown=[ref(9), ref(7), ref(8)],
    outcome="denied",
    reason_code="not_yours",
    counters={"rows": 999_999_999_999_999, "items": 0, "bytes": -1},
    cause=ref(10),
    commitment=memoryview(sha256(b"salt and details").digest()),
)
EVENTS = {"bare": BARE, "full": FULL}


@pytest.mark.parametrize("line", GOLDEN.read_text().splitlines())
def test_leaf_of_version_one_is_what_it_always_was(line: str) -> None:
    golden = json.loads(line)
    event = EVENTS[golden["event"]]
    assert leaf_bytes(event).decode() == golden["bytes"]
    assert leaf_of(event).hex() == golden["leaf"]
    assert golden["leaf"] == sha256(b"\0" + golden["bytes"].encode()).hexdigest()


@pytest.mark.parametrize("name", EVENTS)
def test_every_kind_of_event_is_in_the_golden_file(name: str) -> None:
    assert f'"event": "{name}"' in GOLDEN.read_text()


def test_absent_is_null_and_keys_are_in_order() -> None:
    body = json.loads(leaf_bytes(BARE))
    assert list(body) == sorted(body)
    assert {key for key, value in body.items() if value is None} == {
        "object_kind",
        "object",
        "subject",
        "cause",
        "commitment",
    }
    assert body["at"] == "2026-11-21T19:30:00.000000Z"
