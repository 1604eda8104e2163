"""Each honest state of a sealed item, on envelopes that the SDK's own class has written."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.encryption import BadSessionIds, Keyring, Sealing, SessionSeals, WrapperIds
from sessions_app.encryption.sealing import is_token
from sessions_app.items import SealState, StoredItem
from tests.cases import for_each
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, sealed_in_memory, secrets, stored

TEN_MINUTES = timedelta(seconds=600)


def seals(key_name: str = "old", session_id: str = "s", ttl: timedelta = TEN_MINUTES, **keys: str) -> SessionSeals:
    keyring = Keyring.of(secrets(**(keys or {"old": OLD_KEY, "new": NEW_KEY})))
    return Sealing(key_name, ttl, WrapperIds(), keyring).of_session(session_id)


def states(items: list[StoredItem]) -> list[str]:
    return [item.seal.state if item.seal else "" for item in items]


def changed(item: StoredItem, **members: Any) -> StoredItem:
    return stored(int(item.id), {**json.loads(item.raw), **members})


def payload_of(item: StoredItem) -> str:
    return str(json.loads(item.raw)["payload"])


def test_with_the_right_key_it_opens_to_what_the_agent_wrote() -> None:
    items = sealed_in_memory("Où est ma commande ? 📦", {"type": "x", "deep": [1, {"a": None}]}, key=OLD_KEY)
    opened = seals().examined(items, at=datetime.now(UTC), opens=True)
    assert [json.loads(item.raw) for item in opened] == [
        {"content": "Où est ma commande ? 📦", "role": "user"},
        {"type": "x", "deep": [1, {"a": None}]},
    ]
    assert states(opened) == [SealState.SOUND] * 2
    assert all(item.seal and item.seal.is_open and item.seal.key_name == "old" for item in opened)
    assert [item.byte_count for item in opened] == [item.byte_count for item in items], "the size is the envelope's"


def test_looked_at_it_stays_closed() -> None:
    items = sealed_in_memory("Hi", key=OLD_KEY)
    (item,) = seals().examined_now(items)
    assert item.raw == items[0].raw
    assert item.seal
    assert item.seal.state == SealState.SOUND
    assert not item.seal.is_open


def test_without_a_named_key_there_is_no_key() -> None:
    assert states(seals("").examined_now(sealed_in_memory("Hi", key=OLD_KEY))) == [SealState.NO_KEY]
    assert states(seals("lost").examined_now(sealed_in_memory("Hi", key=OLD_KEY))) == [SealState.NO_KEY]


def test_another_key_of_the_ring_opens_it_and_is_named() -> None:
    (item,) = seals().examined(sealed_in_memory("Hi", key=NEW_KEY), at=datetime.now(UTC), opens=True)
    assert item.seal
    assert (item.seal.state, item.seal.key_name, item.seal.store_key) == (SealState.OTHER_KEY, "new", "old")
    assert "Hi" in item.raw


def test_a_key_that_is_not_here_is_a_wrong_key() -> None:
    items = sealed_in_memory("Hi", "there", key=STRANGE_KEY)
    opened = seals().examined(items, at=datetime.now(UTC), opens=True)
    assert states(opened) == [SealState.WRONG_KEY] * 2
    assert [item.raw for item in opened] == [item.raw for item in items]


def test_another_session_id_is_a_wrong_key_too() -> None:
    assert states(seals(session_id="t").examined_now(sealed_in_memory("Hi", key=OLD_KEY))) == [SealState.WRONG_KEY]


def test_beside_an_item_that_opens_a_broken_seal_is_tampering() -> None:
    good, bad = sealed_in_memory("Hi", "there", key=OLD_KEY)
    token = payload_of(bad)
    flipped = token[:40] + ("A" if token[40] != "A" else "B") + token[41:]
    assert states(seals().examined_now([good, changed(bad, payload=flipped)])) == [SealState.SOUND, SealState.TAMPERED]


def test_whether_the_key_is_right_may_be_known_from_elsewhere_and_is_asked_once() -> None:
    asked = []

    def is_proven() -> bool:
        asked.append(True)
        return True

    items = sealed_in_memory("Hi", "there", key=STRANGE_KEY)
    assert states(seals().examined(items, at=datetime.now(UTC), is_key_proven=is_proven)) == [SealState.TAMPERED] * 2
    assert len(asked) == 1
    seals().examined(sealed_in_memory("Hi", key=OLD_KEY), at=datetime.now(UTC), is_key_proven=is_proven)
    assert len(asked) == 1


@for_each("payload", ["", "gAAAA", "!" * 120, 5, None, "A" * 120, {}])
def test_what_is_no_token_was_tampered_with_and_needs_no_key_to_tell(payload: Any) -> None:
    (item,) = sealed_in_memory("Hi", key=OLD_KEY)
    assert states(seals("").examined_now([changed(item, payload=payload)])) == [SealState.TAMPERED]


def test_a_moved_time_breaks_the_seal() -> None:
    """The time stands in clear, and everybody can change it; with the key that shows."""
    good, bad = sealed_in_memory("Hi", "there", key=OLD_KEY, age=timedelta(days=1))
    (fresh,) = sealed_in_memory("x", key=OLD_KEY)
    moved = payload_of(fresh)[:12] + payload_of(bad)[12:]
    assert is_token(moved)
    seen = seals().examined_now([good, changed(bad, payload=moved)])
    assert states(seen) == [SealState.SOUND, SealState.TAMPERED]
    assert [item.seal.is_expired for item in seen if item.seal] == [True, False]


def test_an_envelope_from_another_session_does_not_open_here() -> None:
    (here,) = sealed_in_memory("Hi", key=OLD_KEY)
    (elsewhere,) = sealed_in_memory("Hi", key=OLD_KEY, session_id="t")
    assert states(seals().examined_now([here, elsewhere])) == [SealState.SOUND, SealState.TAMPERED]


@for_each(
    ("age", "is_expired", "is_ahead"),
    [(0, False, False), (595, False, False), (602, True, False), (86_400, True, False), (-120, False, True)],
)
@for_each("key_name", ["old", ""])
def test_expiry_follows_the_ttl_with_and_without_a_key(
    age: int, is_expired: bool, is_ahead: bool, key_name: str
) -> None:
    (item,) = seals(key_name).examined_now(sealed_in_memory("Hi", key=OLD_KEY, age=timedelta(seconds=age)))
    assert item.seal
    assert (item.seal.is_expired, item.seal.is_ahead) == (is_expired, is_ahead)
    assert item.seal.is_proven == bool(key_name)


def test_what_is_expired_still_opens() -> None:
    items = sealed_in_memory("Hi", key=OLD_KEY, age=timedelta(days=400))
    (item,) = seals().examined(items, at=datetime.now(UTC), opens=True)
    assert "Hi" in item.raw


def test_an_item_read_in_part_cannot_be_checked() -> None:
    (item,) = sealed_in_memory("Hi", key=OLD_KEY)
    part = StoredItem("1", item.position, item.raw[:60], 300_000, item.written_at, raw_tail=item.raw[-40:])
    assert states(seals().examined([part], at=datetime.now(UTC), opens=True)) == [SealState.UNCHECKED]


@for_each(
    "value",
    [{"role": "user", "content": '{"__enc__": 1}'}, {"__enc__": 1}, {"__enc__": 2, "v": 1, "kid": "", "payload": ""}],
)
def test_what_is_no_envelope_has_no_seal(value: Any) -> None:
    assert states(seals().examined_now([stored(1, value), stored(2, "{not json __enc__")])) == ["", ""]


@for_each("seconds", [0, 2**31, 253_402_300_799, 253_402_300_800, 2**63, 2**64 - 1])
@for_each("ttl", [timedelta(seconds=1), timedelta(days=36_500)])
def test_any_time_may_stand_in_an_envelope(seconds: int, ttl: timedelta) -> None:
    (item,) = sealed_in_memory("Hi", key=OLD_KEY)
    token = base64.urlsafe_b64decode(payload_of(item))
    moved = base64.urlsafe_b64encode(token[:1] + seconds.to_bytes(8) + token[9:]).decode()
    assert states(seals(ttl=ttl).examined_now([changed(item, payload=moved)])) == [SealState.WRONG_KEY]


@given(
    envelope=st.fixed_dictionaries(
        {
            "__enc__": st.just(1),
            "v": st.integers() | st.none(),
            "kid": st.text() | st.lists(st.none()),
            "payload": st.text()
            | st.binary().map(lambda some: base64.urlsafe_b64encode(some).decode())
            | st.integers(),
        }
    )
)
def test_whatever_stands_in_an_envelope_it_is_shown_as_what_it_is(envelope: dict[str, Any]) -> None:
    item = stored(1, envelope)
    for opens in (False, True):
        (seen,) = seals().examined([item], at=datetime.now(UTC), opens=opens)
        assert seen.seal
        assert not seen.seal.is_proven
        assert seen.raw == item.raw


@for_each(
    ("text", "session_id", "wrapper_id"),
    [
        ("", "a:b", "a:b"),
        ("sealed:{id} -> {id}", "sealed:a:b", "a:b"),
        ("sealed:{id} -> {id}", "a:b", "a:b"),
        ("{id} -> app/{id}", "a", "app/a"),
        ("{id}:x -> everybody", "a:x", "everybody"),
        ("sealed:{id}->{id}", "sealed:", "sealed:"),
    ],
)
def test_the_wrappers_session_id(text: str, session_id: str, wrapper_id: str) -> None:
    assert WrapperIds.parse(text).of(session_id) == wrapper_id


@for_each("text", ["{id}", "{id} ->", "a -> b", "{id}{id} -> {id}", "{id} -> {id}{id}", "-> {id}"])
def test_a_mapping_that_says_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadSessionIds, match="sealed:"):
        WrapperIds.parse(text)
