"""A store's key by its name: declared, checked against what agents wrote, and never kept."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.encryption import EncryptionRefused, declare_encryption
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, add_sealed, secrets
from tests.sealed import keys as keys

pytestmark = pytest.mark.usefixtures("keys")


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("store_key", *arguments, stdout=out)
    return out.getvalue()


def codes(store: SessionStore) -> list[str]:
    return [problem.code for problem in registry.health(store).problems]


def test_the_command_keeps_the_name_of_the_key_and_nothing_of_it(store: SessionStore) -> None:
    told = json.loads(
        command("main", "--key", "old", "--ttl", "3600", "--session-ids", "sealed:{id} -> {id}", "--json")
    )
    assert told == {
        "store": "main",
        "key": "old",
        "is_here": True,
        "ttl_seconds": 3600,
        "session_ids": "sealed:{id} -> {id}",
    }
    row = SessionStore.objects.filter(pk=store.pk).values().get()
    assert row["encryption_key"] == "old"
    assert OLD_KEY not in f"{row}"
    event = AuditEvent.objects.get(type="store.encryption_declared")
    assert AuditEvent.objects.filter(type="store.row_updated", cause=event.id).exists()


def test_what_is_not_given_stays(store: SessionStore) -> None:
    command("main", "--key", "old", "--ttl", "60")
    assert command("main", "--key", "new").splitlines()[:2] == [
        "main: encrypted with the key new, loaded.",
        "Agents read an item for 60 seconds.",
    ]
    assert "no encryption key is set" in command("main", "--no-key")
    assert "ttl of the agents is not declared" in command("main", "--no-ttl")
    assert AuditEvent.objects.filter(type="store.encryption_declared").count() == 4
    command("main")
    assert AuditEvent.objects.filter(type="store.encryption_declared").count() == 4, "asking changes nothing"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--key", "unheard-of"], "The session key unheard-of is not in the keyring"),
        (["--ttl", "0"], "at least one second"),
        (["--ttl", "99999999999"], "at most a hundred years"),
        (["--session-ids", "nonsense"], "Write how the wrapper's session id is derived"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(arguments: list[str], sentence: str, store: SessionStore) -> None:
    with pytest.raises(CommandError, match=sentence):
        command("main", *arguments)
    store.refresh_from_db()
    assert (store.encryption_key, store.encryption_ttl_seconds, store.encryption_ids) == ("", None, "")


def test_declaring_has_the_sealed_sessions_inspected_again(store: SessionStore) -> None:
    add_sealed("one", "Hi", key=OLD_KEY)
    add_sealed("two", "Hi", key=OLD_KEY)
    SessionRecord.objects.filter(session_id="one").update(is_encrypted=True, inspected_count=5)
    SessionRecord.objects.filter(session_id="two").update(inspected_count=5)
    declare_encryption(store, key="old")
    counts = dict(SessionRecord.objects.values_list("session_id", "inspected_count"))
    assert counts == {"one": -1, "two": 5}


def test_a_right_key_is_no_problem_and_a_wrong_one_is_told(store: SessionStore) -> None:
    add_sealed("one", "Hi", "there", key=OLD_KEY, age=timedelta(days=30))
    SessionRecord.objects.update(is_encrypted=True)
    assert any("are encrypted, but no key is set" in hint for hint in registry.health(store).hints)
    store = declare_encryption(store, key="old")
    assert codes(store) == []
    store = declare_encryption(store, key="new")
    (problem,) = registry.health(store).problems
    assert problem.code == "session-key-wrong"
    assert problem.sentence.startswith("The key new opens none of the 2 encrypted items that were written last")


def test_one_item_that_opens_proves_the_key(store: SessionStore) -> None:
    add_sealed("one", "Hi", key=OLD_KEY)
    add_sealed("one", "there", key=STRANGE_KEY)
    SessionRecord.objects.update(is_encrypted=True)
    assert codes(declare_encryption(store, key="old")) == []


def test_the_wrappers_session_id_is_part_of_it(store: SessionStore) -> None:
    add_sealed("sealed:one", "Hi", key=OLD_KEY, wrapper_id="one")
    SessionRecord.objects.update(is_encrypted=True)
    store = declare_encryption(store, key="old")
    assert codes(store) == ["session-key-wrong"]
    assert codes(declare_encryption(store, session_ids="sealed:{id} -> {id}")) == []


def test_a_key_that_is_gone_or_odd_is_told_and_nothing_else_breaks(
    store: SessionStore, keys: Any, administrator: Client, operator: Client
) -> None:
    store = declare_encryption(store, key="old")
    add_sealed("one", "Hi", key=OLD_KEY)
    keys.SESSION_KEYS = secrets(new=NEW_KEY)
    assert codes(store) == ["session-key-missing"]
    page = administrator.get("/stores/main/")
    assert page.status_code == 200
    assert "The session key old is not in the keyring of this console." in page.text
    assert operator.get(SessionRecord.objects.get().get_absolute_url()).status_code == 200
    keys.SESSION_KEYS = secrets(old="short")
    assert codes(store) == ["session-key-doubtful"]
    assert "fewer than 32 bytes" in administrator.get("/stores/main/").text
    out = StringIO()
    call_command("check_stores", stdout=out)
    assert "fewer than 32 bytes" in out.getvalue()


def test_an_unusable_name_is_refused_by_the_verb(store: SessionStore) -> None:
    with pytest.raises(EncryptionRefused, match="lost is not in the keyring"):
        declare_encryption(store, key="lost")
