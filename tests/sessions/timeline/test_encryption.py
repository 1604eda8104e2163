"""Encrypted items, written by the SDK's own class: what can be told without the key."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

from agents import SQLiteSession
from agents.extensions.memory import EncryptedSession

from sessions_app.timeline import build_timeline
from sessions_app.timeline.encryption import sealed_at
from sessions_app.timeline.events import Encrypted
from tests.sessions.timeline.items import ENVELOPE, session, stored


def envelopes_of_the_sdk(*texts: str) -> list[Any]:
    async def write() -> list[Any]:
        inner = SQLiteSession("customer_1", ":memory:")
        session = EncryptedSession("customer_1", inner, encryption_key="not a secret")
        await session.add_items([{"role": "user", "content": text} for text in texts])
        return list(await inner.get_items())

    return asyncio.run(write())


def test_times_and_sizes_are_all_that_shows() -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    items = session(envelopes_of_the_sdk("my card is 4711", "thanks"))
    (event,) = build_timeline(items, starts_session=True, ends_session=True).events
    assert isinstance(event, Encrypted)
    assert event.title == "2 encrypted items"
    assert event.byte_count == sum(item.byte_count for item in items)
    assert event.first_at is not None
    assert event.last_at is not None
    assert before <= event.first_at <= event.last_at <= datetime.now(UTC)


def test_token_that_is_none_has_no_time() -> None:
    for payload in ("", "AAAA", "gAAAAA", "!!!!!!!!!!!!", "gP__________", "gQAAAABrAO-i", 5, None):
        assert sealed_at({**ENVELOPE, "payload": payload}) is None


def test_without_a_token_time_the_stores_time_stands() -> None:
    item = stored({**ENVELOPE, "payload": "?"})
    (event,) = build_timeline([item], starts_session=True, ends_session=True).events
    assert isinstance(event, Encrypted)
    assert event.first_at == item.written_at


def test_what_only_looks_like_an_envelope_is_shown() -> None:
    (event,) = build_timeline([stored({"__enc__": 1, "hidden": True})], starts_session=True, ends_session=True).events
    assert event.kind == "note"
