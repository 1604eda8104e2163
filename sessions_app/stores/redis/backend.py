"""Sessions of the SDK's RedisSession: a hash, a list of items and sometimes a counter each, below one prefix.

An item's id and position are its place in the list. The keys of a session:
`PREFIX:ID` (hash: session_id, created_at, updated_at), `PREFIX:ID:messages` (list), `PREFIX:ID:counter` (string).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from time import monotonic, perf_counter
from typing import Any
from uuid import uuid4

from django import forms
from django.utils.timezone import now

from memadmin import times
from memadmin.counting import COUNT_CAP
from sessions_app.items import ItemPage, Position, StoredItem, can_be_registered
from sessions_app.stores.base import (
    COUNTED_EXACTLY,
    IN_DOUBT,
    ITEM_HEAD_BYTES,
    ITEM_TAIL_BYTES,
    WHOLE_ITEM_BYTES,
    Capability,
    Deleted,
    FoundSession,
    ItemChanged,
    Place,
    SessionPage,
    SessionPreview,
    StoreHealth,
    StoreProblem,
    StoreUnavailable,
    UnknownItem,
)
from sessions_app.stores.kinds import EnvironmentField, StoreKind, secret_named
from sessions_app.stores.paged import PagedBackend, erasing, whole_number
from sessions_app.stores.previews import PREVIEW_HEAD_CHARACTERS, PREVIEW_ITEMS, preview_from
from sessions_app.stores.redis import scripts
from sessions_app.stores.redis import server as redis_server

WALK_SECONDS = 2.0
"""Time limit of one page of `enumerate_sessions`, however few of the scanned keys are sessions."""

LIST, COUNTER = b":messages", b":counter"


class RedisForm(forms.Form):
    url_env = EnvironmentField(
        label="Environment variable with the address",
        max_length=200,
        help_text="The name of the environment variable with the address, such as redis://user:password@host:6379/0.",
    )
    key_prefix = forms.CharField(
        label="Key prefix",
        required=False,
        max_length=200,
        strip=False,
        help_text="The agents' key_prefix of RedisSession; agents:session if not given.",
    )

    def clean_key_prefix(self) -> str:
        return str(self.cleaned_data["key_prefix"]) or "agents:session"


class RedisBackend(PagedBackend):
    capabilities = frozenset(
        {
            Capability.ENUMERATE,
            Capability.ERASE_SESSIONS,
            Capability.ERASE_IN_STEPS,
            Capability.ERASE_ITEMS,
            Capability.REPLACE_ITEMS,
            Capability.SELF_EXPIRY,
        }
    )

    # --- the whole store ----------------------------------------------------------------------------------------------

    def health(self, *, thorough: bool = False) -> StoreHealth:
        began = perf_counter()
        try:
            about = self._ask("INFO")
            answered_in_ms = (perf_counter() - began) * 1000
            key_count = self._ask("DBSIZE")
            problems, sessions, items = [*problems_of(about)], None, None
            if thorough or key_count <= COUNTED_EXACTLY:
                sessions, items, odd = self._count_all()
                if odd:
                    problems.append(
                        StoreProblem(
                            "odd-keys",
                            f"{odd:,} of the keys below {self.prefix} are not sessions of the SDK: they contain"
                            " something else, or their names are not text or too long. They are not listed.",
                        )
                    )
        except StoreUnavailable as away:
            return StoreHealth(problems=(StoreProblem("unavailable", str(away), is_fatal=True),))
        return StoreHealth(
            tuple(problems), sessions, items, answered_in_ms=answered_in_ms, hints=tuple(hints_of(about))
        )

    def system(self) -> str:
        return "redis"

    def places(self) -> frozenset[Place]:
        """Keys of a longer prefix that begins with this one are distinguished by their content."""
        run = self._ask("INFO", "server")["run_id"]
        database = self._client().get_connection_kwargs().get("db", 0)
        return frozenset({("redis", str(run), str(database), self.prefix)})

    def _count_all(self) -> tuple[int, int, int]:
        """Number of sessions, of items, and of keys that are neither. Scans all keys."""
        items, odd, cursor = {}, 0, 0
        while True:
            cursor, found = self._found(cursor, 1_000)
            for key in found:
                if key.session:
                    items[key.session.session_id] = key.item_count
                odd += key.is_odd
            if not cursor:
                return len(items), sum(items.values()), odd

    def enumerate_sessions(self, cursor: str = "", *, limit: int) -> SessionPage:
        sessions: dict[str, FoundSession] = {}
        place, deadline = int(cursor or 0), monotonic() + WALK_SECONDS
        while True:
            place, found = self._found(place, limit)
            sessions |= {key.session.session_id: key.session for key in found if key.session}
            if not place or len(sessions) >= limit or monotonic() > deadline:
                return SessionPage(list(sessions.values()), str(place or ""))

    def _found(self, cursor: int, count: int) -> tuple[int, list[FoundKey]]:
        """Next cursor, and the store's keys among about `count` keys of the server from a cursor on."""
        prefix = as_bytes(f"{self.prefix}:")
        pattern = re.sub(rb"([\\*?\[\]])", rb"\\\1", prefix) + b"*"
        cursor, keys = self._ask("SCAN", cursor, "MATCH", pattern, "COUNT", count)
        answers = self._ask_all(scripts.FOUND, [(key, key + LIST, key.removesuffix(LIST)) for key in keys])
        return int(cursor), [found_key(key, prefix, *answer) for key, answer in zip(keys, answers, strict=True)]

    def look_up(self, session_ids: Sequence[str]) -> Mapping[str, FoundSession]:
        """One round trip: each session by its hash or, without one, by its list."""
        prefix = as_bytes(f"{self.prefix}:")
        own = [self._keys(session_id)[0] for session_id in session_ids]
        keys = [key for pair in own for key in (pair, pair + LIST)]
        answers = self._ask_all(scripts.FOUND, [(key, key + LIST, key.removesuffix(LIST)) for key in keys])
        found = [found_key(key, prefix, *answer).session for key, answer in zip(keys, answers, strict=True)]
        there = {session.session_id: session for session in reversed(found) if session}
        return {session_id: there[session_id] for session_id in session_ids if session_id in there}

    # --- one session, read --------------------------------------------------------------------------------------------

    def previews(self, session_ids: Sequence[str]) -> Mapping[str, SessionPreview]:
        ids = list(dict.fromkeys(session_ids))
        # A character has at most four bytes.
        answers = self._ask_all(
            scripts.PREVIEW,
            [self._keys(session_id)[:2] for session_id in ids],
            [PREVIEW_ITEMS, 4 * PREVIEW_HEAD_CHARACTERS],
        )
        return {session_id: preview_of(answer) for session_id, answer in zip(ids, answers, strict=True)}

    def window(self, session_id: str, pivot: Position | None, *, earlier: int, later: int) -> ItemPage:
        place = "" if pivot is None else int(pivot.key[-1])
        wanted = [place, earlier, later, WHOLE_ITEM_BYTES, ITEM_HEAD_BYTES, ITEM_TAIL_BYTES]
        count, first, stored = self._run(scripts.WINDOW, self._keys(session_id)[1:2], wanted)
        items = [item_at(first + number, *each) for number, each in enumerate(stored)]
        return ItemPage(items, has_earlier=first > 0, has_later=first + len(items) < count)

    def position_of(self, session_id: str, item_id: str) -> Position:
        return self.item(session_id, item_id).position

    def item(self, session_id: str, item_id: str) -> StoredItem:
        place = whole_number(item_id)
        # A negative index would count from the end.
        text = self._ask("LINDEX", self._keys(session_id)[1], place) if place >= 0 else None
        if text is None:
            raise UnknownItem(item_id)
        return item_at(place, len(text), text, b"")

    def count(self, session_id: str, cap: int = COUNT_CAP) -> int:
        return min(int(self._ask("LLEN", self._keys(session_id)[1])), cap + 1)

    # --- one session, changed -----------------------------------------------------------------------------------------

    def delete_some(self, session_id: str, *, at_most: int) -> Deleted:
        with erasing(self.store, session_id):
            wanted: list[str | bytes | int] = [as_bytes(session_id), at_most]
            count, left = self._change(scripts.DELETE_NEWEST, self._keys(session_id), wanted)
        return Deleted(int(count), min(int(left), COUNT_CAP + 1))

    def replace_item(self, session_id: str, item_id: str, text: str, *, expected: str) -> None:
        place = whole_number(item_id)
        if place < 0:
            raise UnknownItem(item_id)
        texts = [as_bytes(expected), as_bytes(text)]
        outcome = self._change(scripts.REPLACE, self._keys(session_id)[1:2], [place, *texts])
        if outcome == b"unknown":
            raise UnknownItem(item_id)
        if outcome == b"changed":
            raise ItemChanged(item_id)

    def delete_items(self, session_id: str, items: Sequence[StoredItem]) -> int:
        wanted = {int(item.id): as_bytes(item.raw) for item in items}
        pairs = [part for pair in wanted.items() for part in pair]
        gone = int(self._change(scripts.DELETE, self._keys(session_id)[1:2], [uuid4().hex, *pairs]))
        if gone < 0:
            raise ItemChanged(session_id)
        return gone

    # --- how it is asked ----------------------------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        return str(self.store.options.get("key_prefix", ""))

    @property
    def variable(self) -> str:
        return str(self.store.options.get("url_env", ""))

    def _keys(self, session_id: str) -> tuple[bytes, bytes, bytes]:
        key = as_bytes(f"{self.prefix}:{session_id}")
        return key, key + LIST, key + COUNTER

    def _client(self) -> Any:
        return redis_server.client_for(secret_named(self.store, "url_env"), self.variable)

    def _ask(self, *command: object) -> Any:
        client = self._client()
        with redis_server.plain_words(self.variable):
            return client.execute_command(*command)

    def _run(self, script: str, keys: Sequence[bytes], arguments: Sequence[str | bytes | int]) -> Any:
        client = self._client()
        with redis_server.plain_words(self.variable):
            return redis_server.run(script, client, keys, arguments)

    def _ask_all(
        self, script: str, keys: Sequence[Sequence[bytes]], arguments: Sequence[str | bytes | int] = ()
    ) -> list[Any]:
        """Runs a script for each of several sets of keys, in one round trip."""
        if not keys:
            return []
        client = self._client()
        with redis_server.plain_words(self.variable):
            pipeline = client.pipeline(transaction=False)
            for each in keys:
                redis_server.run(script, pipeline, each, arguments)
            return list(pipeline.execute())

    def _change(self, script: str, keys: Sequence[bytes], arguments: Sequence[str | bytes | int]) -> Any:
        # A server that does not answer now might still execute the script later: so it is tested first.
        self._ask("PING")
        client = self._client()
        with redis_server.plain_words(self.variable, changed=IN_DOUBT):
            return redis_server.run(script, client, keys, arguments)


def problems_of(about: Mapping[str, Any]) -> Iterator[StoreProblem]:
    """Problems found in the server's INFO."""
    if about.get("role") in ("slave", "replica"):
        yield StoreProblem("read-only", "The server is a replica: sessions can be read, but nothing can be erased.")
    if about.get("cluster_enabled"):
        yield StoreProblem(
            "cluster", "The server is part of a cluster, to which the SDK's RedisSession cannot write.", is_fatal=True
        )


def hints_of(about: Mapping[str, Any]) -> Iterator[str]:
    if about.get("aof_enabled"):
        yield (
            "The server keeps an append-only file, in which erased text stays until the file is rewritten"
            " (BGREWRITEAOF)."
        )
    if str(about.get("maxmemory_policy", "")).startswith("allkeys"):
        yield "When its memory is full, the server deletes any session (maxmemory-policy)."


@dataclass(frozen=True, slots=True)
class FoundKey:
    session: FoundSession | None
    item_count: int = 0
    is_odd: bool = False
    """True if the key is neither a session nor part of one."""


def found_key(
    key: bytes,
    prefix: bytes,
    kind: bytes,
    owner: bytes = b"",
    created_at: bytes = b"",
    updated_at: bytes = b"",
    item_count: int = 0,
    left: int = -1,
    digest: bytes = b"",
) -> FoundKey:
    """Result of the script FOUND for one key."""
    if not digest:
        belongs_to_one = (kind == b"list" and key.endswith(LIST)) or (kind == b"string" and key.endswith(COUNTER))
        return FoundKey(None, is_odd=not belongs_to_one)
    session_id = key.removeprefix(prefix) if kind == b"hash" else key.removeprefix(prefix).removesuffix(LIST)
    if kind == b"hash" and owner and owner != session_id:
        return FoundKey(None)  # a key of a longer prefix that begins with this one
    if not can_be_registered(as_text(session_id)):
        return FoundKey(None, is_odd=True)
    # Times are whole seconds, and pop_item changes none: the mark includes the number of items and the last item.
    mark = f"{as_text(updated_at)[:20]}/{item_count}/{as_text(digest)}"
    session = FoundSession(
        as_text(session_id), times.of_seconds(created_at), times.of_seconds(updated_at), mark, expiry(left)
    )
    return FoundKey(session, item_count)


def as_bytes(text: str) -> bytes:
    """The inverse of `as_text`."""
    return text.encode(errors="surrogateescape")


def as_text(stored: bytes) -> str:
    """Text of stored bytes. Bytes that are not UTF-8 are kept as surrogates, and written back unchanged."""
    return stored.decode(errors="surrogateescape")


def item_at(place: int, byte_count: int, raw: bytes, tail: bytes) -> StoredItem:
    if not tail:
        return StoredItem(str(place), Position((place,)), as_text(raw), byte_count, None)
    # The cut may be inside of a character.
    head, end = raw.decode(errors="ignore"), tail.decode(errors="ignore")
    return StoredItem(str(place), Position((place,)), head, byte_count, None, raw_tail=end)


def preview_of(answer: Sequence[Any]) -> SessionPreview:
    if not answer:
        return preview_from([], None)
    count, left, heads = answer
    texts = [head.decode(errors="replace")[:PREVIEW_HEAD_CHARACTERS] for head in heads]
    return replace(preview_from(texts, min(count, COUNT_CAP + 1)), expires_at=expiry(left))


def expiry(milliseconds: int) -> datetime | None:
    """Time at which a key expires; None if it does not."""
    with suppress(OverflowError):
        return times.in_utc(now() + timedelta(milliseconds=milliseconds)) if milliseconds >= 0 else None
    return None


KIND = StoreKind(
    "redis",
    "Redis",
    "bolt",
    open=RedisBackend,
    form=RedisForm,
    layouts=("openai-agents 0.3 and later",),
    limits=("Erased text stays in the server's own files (RDB, AOF) until it rewrites them, and in backups.",),
)
