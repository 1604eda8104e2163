"""Agents that keep their sessions encrypted: the SDK's own `EncryptedSession`, in and outside of the main store."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest.mock import patch

import pytest
from agents import SQLiteSession, TResponseInputItem
from agents.extensions.memory import EncryptedSession
from cryptography.fernet import Fernet

from memadmin.environment import NamedSecret
from sessions_app.items import Position, StoredItem
from tests.agents import in_sdk, user

OLD_KEY = "b2xkLWtleS1vZi10aGUtdGVzdHMtLTMyLWJ5dGVzISE="
NEW_KEY = "bmV3LWtleS1vZi10aGUtdGVzdHMtLTMyLWJ5dGVzISE="
STRANGE_KEY = "c3RyYW5nZXJzLWtleS0tLS0tLS0tLTMyLWJ5dGVzISE="

assert all(len(Fernet(key)._signing_key) == 16 for key in (OLD_KEY, NEW_KEY, STRANGE_KEY))


def secrets(**texts: str) -> tuple[NamedSecret, ...]:
    """A keyring as the settings have it; `old_key` is the name old-key."""
    return tuple(
        NamedSecret(name.replace("_", "-"), f"MEMADMIN_SESSION_KEY_{name.upper()}", text)
        for name, text in texts.items()
    )


def as_items(items: Sequence[Any]) -> list[TResponseInputItem]:
    return cast("list[TResponseInputItem]", [user(item) if isinstance(item, str) else item for item in items])


@contextmanager
def written_ago(age: timedelta) -> Iterator[None]:
    """Agents' clocks are so far behind. Only what `cryptography` stamps into tokens follows them."""
    then = (datetime.now(UTC) - age).timestamp()
    with patch("cryptography.fernet.time.time", return_value=then):
        yield


def sealed_in_memory(*items: Any, key: str, session_id: str = "s", age: timedelta = timedelta()) -> list[StoredItem]:
    """What a store would hand out after an agent has written the items; strings are what a user says."""

    async def write() -> list[Any]:
        inner = SQLiteSession(session_id, ":memory:")
        session = EncryptedSession(session_id, inner, encryption_key=key)
        await session.add_items(as_items(items))
        return list(await inner.get_items())

    with written_ago(age):
        envelopes = asyncio.run(write())
    return [stored(number, envelope) for number, envelope in enumerate(envelopes, start=1)]


def stored(number: int, value: Any) -> StoredItem:
    raw = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    at = datetime(2026, 11, 17, 14, 2, tzinfo=UTC)
    return StoredItem(str(number), Position((at.isoformat(), number)), raw, len(raw), at)


def add_sealed(
    session_id: str, *items: Any, key: str, wrapper_id: str = "", age: timedelta = timedelta(), ttl: int = 600
) -> None:
    """One call of `add_items` of an agent that keeps its session encrypted in the main store."""

    async def write(tables: Any) -> None:
        session = EncryptedSession(wrapper_id or session_id, tables.session(session_id), encryption_key=key, ttl=ttl)
        await session.add_items(as_items(items))

    with written_ago(age):
        in_sdk(write)


def read_by_agent(session_id: str, *, key: str, wrapper_id: str = "", ttl: int = 600) -> list[Any]:
    """What an agent with this key reads."""

    async def read(tables: Any) -> list[Any]:
        session = EncryptedSession(wrapper_id or session_id, tables.session(session_id), encryption_key=key, ttl=ttl)
        return list(await session.get_items())

    return in_sdk(read)


@pytest.fixture
def keys(settings: Any) -> Any:
    """A keyring with the keys `old` and `new`; the settings, to change it."""
    settings.SESSION_KEYS = secrets(old=OLD_KEY, new=NEW_KEY)
    return settings
