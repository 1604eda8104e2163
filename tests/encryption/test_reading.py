"""Reading sealed sessions: times and sizes for everybody, words under a grant, and the honest state of each item."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from cryptography.fernet import Fernet
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

import sessions_app
from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant
from memadmin.audit.models import AuditEvent
from sessions_app import access, masked_reader
from sessions_app.models import SessionFinding, SessionRecord, SessionStore
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.inspection import inspect_session
from sessions_app.stores.base import Backend
from tests.agents import add_items, run_sql
from tests.approvals import approve_grant
from tests.people import person, signed_in
from tests.sealed import NEW_KEY, OLD_KEY, STRANGE_KEY, add_sealed, secrets
from tests.sealed import keys as keys

pytestmark = pytest.mark.usefixtures("keys")

SECRET = "The cardiologist has time on Monday"


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return declare_encryption(kept_main_store, key="old")


@pytest.fixture
def support(store: SessionStore) -> User:
    return person("support")


@pytest.fixture
def reader(support: User) -> Client:
    return signed_in(support)


@pytest.fixture
def grant(support: User) -> Callable[[SessionRecord], ContentGrant]:
    def give(record: SessionRecord) -> ContentGrant:
        asked = services.request_grant(by=support, record_ids=[record.pk], reason="support_case", ticket="T-1")
        return approve_grant(asked, by=person("compliance"))

    return give


Grant = Callable[[SessionRecord], ContentGrant]


def record_of(session_id: str = "s") -> SessionRecord:
    return SessionRecord.objects.get(session_id=session_id)


def page(client: Client, session_id: str = "s", query: str = "") -> str:
    answer = client.get(record_of(session_id).get_absolute_url() + query)
    assert answer.status_code == 200
    return " ".join(answer.text.split())


def events(event_type: str) -> list[dict[str, int]]:
    return list(AuditEvent.objects.filter(type=event_type).order_by("number").values_list("counters", flat=True))


def codes(session_id: str = "s") -> list[tuple[str, str]]:
    inspect_session(record_of(session_id))
    return list(SessionFinding.objects.filter(session_id=session_id).order_by("pk").values_list("kind", "item_id"))


def rewrite(item: int, **members: Any) -> None:
    """Somebody with access to the database changes an envelope, the n-th of all items."""
    for name, value in members.items():
        run_sql(
            "UPDATE agent_messages"
            f" SET message_data = jsonb_set(message_data::jsonb, '{{{name}}}', '{json.dumps(value)}')"
            f" WHERE id = (SELECT id FROM agent_messages ORDER BY id OFFSET {item - 1} LIMIT 1)"
        )


class TestWithoutAGrant:
    def test_times_and_sizes_and_the_way_to_ask(self, reader: Client) -> None:
        add_sealed("s", SECRET, "ok", key=OLD_KEY)
        shown = page(reader)
        assert "2 encrypted items" in shown
        assert "Key “old” available · 2 items verified" in shown
        assert reverse("sessions:ask", args=[record_of().pk]) in shown
        assert SECRET not in shown
        assert not events("session.decrypted")
        ask = reader.get(reverse("sessions:ask", args=[record_of().pk]))
        assert ask.status_code in (200, 302)

    def test_no_way_out(self, reader: Client) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        for name in ("timeline", "live", "export-jsonl", "export-markdown"):
            answer = reader.get(reverse(f"sessions:{name}", args=[record_of().pk]))
            assert answer.status_code == 200, name
            assert SECRET not in str(answer.getvalue().decode()), name

    def test_not_by_item_list_overview_or_search(self, reader: Client) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        SessionRecord.objects.update(is_encrypted=True)
        item_id = json.loads(
            json.dumps([i.id for i in masked_reader.reader_for(record_of().store).first_page("s", 5).items])
        )[0]
        for address in (
            reverse("sessions:item", args=[record_of().pk, item_id]),
            reverse("sessions:item", args=[record_of().pk, item_id]) + "?download",
            reverse("sessions:list"),
            reverse("sessions:overview"),
        ):
            assert SECRET not in reader.get(address).text
        for address in (reverse("sessions:search"), reverse("sessions:find", args=[record_of().pk])):
            found = reader.post(address, {"q": "cardiologist"}, follow=True).text
            assert SECRET not in found
            assert "<mark>" not in found

    def test_asking_for_it_decrypted_asks_for_a_grant(self, reader: Client) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        for way in ("export-jsonl", "item"):
            arguments = [record_of().pk, masked_reader.reader_for(record_of().store).first_page("s", 5).items[0].id]
            address = reverse(f"sessions:{way}", args=arguments if way == "item" else arguments[:1])
            answer = reader.get(f"{address}?download&decrypted")
            assert answer.status_code == 403, way
            assert "Encrypted session" in answer.text, way
            assert SECRET not in answer.text, way

    def test_somebody_elses_grant_opens_nothing(self, store: SessionStore, reader: Client) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        reviewer = person("reviewer")
        asked = services.request_grant(by=reviewer, record_ids=[record_of().pk], reason="legal", ticket="T")
        approve_grant(asked, by=person("compliance"))
        assert SECRET not in page(reader)

    def test_a_reader_that_opened_without_asking_would_show_it(
        self, reader: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What the tests above are worth: with every grant taken for given, the words are on the page."""
        add_sealed("s", SECRET, key=OLD_KEY)
        monkeypatch.setattr(access, "may_open", lambda user, record: True)
        assert SECRET in page(reader)


class TestUnderAGrant:
    def test_words_are_read_masked_and_recorded(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, "My card is 4111 1111 1111 1111", key=OLD_KEY)
        grant(record_of())
        shown = page(reader)
        assert SECRET in shown
        assert "4111 1111" not in shown, "what is sealed is masked like anything else"
        assert "1 masked" in shown
        assert "2 items here are encrypted with the key “old” and decrypted for you." in shown
        assert events("session.decrypted") == [{"items": 2}]
        assert AuditEvent.objects.get(type="session.decrypted").object_ref == record_of().pk

    def test_it_ends_with_the_grant_also_on_an_open_page(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        given = grant(record_of())
        opened = reader.get(record_of().get_absolute_url())
        live = opened.context["live_url"]
        assert reader.get(live).status_code == 204
        services.end_grant(given, by=given.requested_by)
        refreshed = reader.get(live)
        assert refreshed.status_code == 200
        assert "1 encrypted item" in refreshed.text
        assert SECRET not in refreshed.text
        assert SECRET not in page(reader)

    def test_a_call_and_its_output_are_paired(self, reader: Client, grant: Grant) -> None:
        add_sealed(
            "s",
            "How is the weather?",
            {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "18 degrees"},
            key=OLD_KEY,
        )
        grant(record_of())
        shown = page(reader)
        assert "get_weather" in shown
        assert "18 degrees" in shown
        assert "no output" not in shown

    def test_downloads_are_as_stored_unless_asked_for_decrypted(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        grant(record_of())
        address = reverse("sessions:export-jsonl", args=[record_of().pk])
        assert "?decrypted" in page(reader)
        stored = reader.get(address).getvalue().decode()
        assert json.loads(stored)["__enc__"] == 1
        opened = reader.get(f"{address}?decrypted").getvalue().decode()
        assert json.loads(opened) == {"content": SECRET, "role": "user"}
        assert SECRET in reader.get(reverse("sessions:export-markdown", args=[record_of().pk])).getvalue().decode()
        told = AuditEvent.objects.filter(type="session.downloaded").order_by("number")
        assert list(told.values_list("counters", flat=True)) == [
            {"jsonl": 1},
            {"jsonl": 1, "opened": 1},
            {"markdown": 1, "opened": 1},
        ]

    def test_one_item_is_shown_decrypted_and_as_it_is_stored(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        grant(record_of())
        item = masked_reader.reader_for(record_of().store).first_page("s", 5).items[0]
        address = reverse("sessions:item", args=[record_of().pk, item.id])
        shown = reader.get(address)
        assert SECRET in shown.text
        assert "hkdf-v1" in shown.text
        assert reader.get(f"{address}?download").content.decode() == item.raw
        assert json.loads(reader.get(f"{address}?download&decrypted").content) == {"content": SECRET, "role": "user"}

    def test_a_masked_value_in_it_is_revealed_for_a_reason(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", "My card is 4111 1111 1111 1111", key=OLD_KEY)
        item = masked_reader.reader_for(record_of().store).first_page("s", 5).items[0]
        address = reverse("sessions:reveal", args=[record_of().pk, item.id])
        assert "4111 1111" not in reader.post(address, {"reason": "payment"}).text
        grant(record_of())
        assert "4111 1111 1111 1111" in reader.post(address, {"reason": "payment"}).text
        assert events("session.revealed") == [{"items": 1, "values": 0}, {"items": 1, "values": 1}]

    def test_its_own_search_finds_and_says_what_it_could_not_read(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        add_sealed("s", "cardiologist again", key=STRANGE_KEY)
        grant(record_of())
        find = reverse("sessions:find", args=[record_of().pk])
        found = reader.post(find, {"q": "cardiologist"}, follow=True)
        assert "The <mark>cardiologist</mark> has time on Monday" in " ".join(found.text.split())
        nothing = reader.post(find, {"q": "dentist"}, follow=True)
        assert "One encrypted item could not be decrypted and was not searched." in nothing.text

    def test_the_search_of_all_sessions_looks_into_those_that_a_grant_opens(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        add_sealed("s", "a cardiologist whose key is gone", key=STRANGE_KEY)
        add_sealed("shut", "another cardiologist", key=OLD_KEY)
        add_items("plain", "one cardiologist more")
        SessionRecord.objects.exclude(session_id="plain").update(is_encrypted=True)
        grant(record_of())
        in_the_top_bar, in_the_list = dict[str, str](), {"filters": ""}
        for searched, form in enumerate((in_the_top_bar, in_the_list), start=1):
            answer = reader.post(reverse("sessions:search"), {"q": "cardiologist", **form}, follow=True)
            if not form:
                answer = reader.get(reverse("sessions:search-messages", args=[answer.context["search"].pk]))
            found = " ".join(answer.text.split())
            assert "The <mark>cardiologist</mark> has time on Monday" in found, form
            assert "one <mark>cardiologist</mark> more" in found, form
            assert "another" not in found, form
            assert "Encrypted items are searched only if you have a grant for their session." in found, form
            assert "One encrypted item could not be decrypted and was not searched." in found, form
            assert events("session.decrypted") == [{"items": 1}] * searched, form

    def test_only_the_items_of_the_page_and_the_one_beside_it_are_decrypted(self, reader: Client, grant: Grant) -> None:
        for number in range(15):
            add_sealed("s", *[f"item {number}"] * 10, key=OLD_KEY)
        grant(record_of())
        with patch.object(Fernet, "decrypt", autospec=True, side_effect=Fernet.decrypt) as decrypt:
            page(reader)
        # The item before the page shows that a run begins there.
        assert decrypt.call_count == 101

    def test_a_locked_session_needs_one_grant_for_both(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        SessionRecord.objects.update(is_sensitive=True)
        assert reader.get(record_of().get_absolute_url()).status_code == 403
        grant(record_of())
        assert SECRET in page(reader)


class TestStates:
    def test_no_key_is_named(self, store: SessionStore, reader: Client, grant: Grant) -> None:
        declare_encryption(store, key="")
        add_sealed("s", SECRET, key=OLD_KEY)
        grant(record_of())
        shown = page(reader)
        assert "key not available" in shown
        assert "No key is configured for this store" in shown
        assert "Request access" not in shown
        assert [code for code, _ in codes()] == ["no_key"]

    def test_the_key_is_gone(self, keys: Any, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        grant(record_of())
        keys.SESSION_KEYS = secrets(new=NEW_KEY)
        assert "The key “old” is not in the keyring of this console." in page(reader)

    def test_wrong_key(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=STRANGE_KEY)
        grant(record_of())
        shown = page(reader)
        assert "wrong key" in shown
        assert "An agent with the key “old” sees an empty history." in shown
        assert [code for code, _ in codes()] == ["wrong_key"]
        assert not events("session.decrypted")

    def test_another_key_of_the_ring_is_read_and_named(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=NEW_KEY)
        grant(record_of())
        shown = page(reader)
        assert SECRET in shown
        assert "other key" in shown
        assert [code for code, _ in codes()] == ["other_key"]

    def test_tampered_beside_items_that_open(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", "one", "two", "three", key=OLD_KEY)
        items = masked_reader.reader_for(record_of().store).first_page("s", 5).items
        payload = json.loads(items[1].raw)["payload"]
        rewrite(2, payload=payload[:60] + ("A" if payload[60] != "A" else "B") + payload[61:])
        grant(record_of())
        shown = page(reader)
        assert "tampered" in shown
        assert "two" not in shown.replace("two runs", "")
        assert codes() == [("tampered", items[1].id)]

    def test_tampering_shows_on_the_items_own_page_too(self, reader: Client, grant: Grant) -> None:
        """There it stands alone, and nothing beside it proves the key: the ends of the session do."""
        add_sealed("s", "one", "two", key=OLD_KEY)
        item = masked_reader.reader_for(record_of().store).first_page("s", 5).items[1]
        payload = json.loads(item.raw)["payload"]
        rewrite(2, payload=payload[:60] + ("A" if payload[60] != "A" else "B") + payload[61:])
        assert "tampered" in reader.get(reverse("sessions:item", args=[record_of().pk, item.id])).text

    def test_expired_for_agents_but_still_there(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", "long ago", key=OLD_KEY, age=timedelta(days=3))
        add_sealed("s", SECRET, key=OLD_KEY)
        assert "Agents no longer read this item; it is still stored." in page(reader)
        grant(record_of())
        shown = page(reader)
        assert "long ago" in shown
        assert shown.count("hourglass-off") == 1
        assert [code for code, _ in codes()] == ["expired_for_agents"]

    def test_the_stores_ttl_decides(self, store: SessionStore, reader: Client) -> None:
        declare_encryption(store, ttl=timedelta(days=30))
        add_sealed("s", "long ago", key=OLD_KEY, age=timedelta(days=3))
        assert "expired" not in page(reader)

    def test_plaintext_among_encrypted(self, reader: Client, grant: Grant) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        add_items("s", "in the clear")
        grant(record_of())
        shown = page(reader)
        assert "in the clear" in shown
        assert "plain text" in shown
        assert [code for code, _ in codes()] == ["plaintext_among_encrypted"]

    def test_unlike_neighbours_are_events_of_their_own(self, reader: Client) -> None:
        add_sealed("s", "a", "b", key=OLD_KEY, age=timedelta(days=1))
        add_sealed("s", "c", key=OLD_KEY)
        add_sealed("s", "d", "e", "f", key=NEW_KEY)
        shown = page(reader)
        for title in ("2 encrypted items", "1 encrypted item,", "3 encrypted items"):
            assert title in shown

    def test_the_time_of_a_token_is_unproven_without_a_key(self, keys: Any, reader: Client) -> None:
        add_sealed("s", SECRET, key=OLD_KEY)
        assert "unverified" not in page(reader)
        keys.SESSION_KEYS = ()
        assert "unverified" in page(reader)


def test_a_store_without_encryption_asks_for_no_grants(
    store: SessionStore, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare_encryption(store, key="")
    add_items("s", "Hi")
    monkeypatch.setattr(access, "granted_records", lambda user: pytest.fail("nobody has to ask"))
    page(reader)


@pytest.mark.parametrize("is_first", [True, False])
def test_one_item_in_the_form_of_an_envelope_hides_no_others(
    store: SessionStore, operator: Client, is_first: bool
) -> None:
    """Whoever can write an item could otherwise take a session out of search, lists and learning."""
    forged = {"__enc__": 1, "v": 1, "kid": "x", "payload": "x"}
    items: list[Any] = [forged, "Where is my refund?"]
    add_items("s", *(items if is_first else reversed(items)))
    inspect_session(record_of())

    record = record_of()
    assert record.is_encrypted
    timeline = operator.get(record.get_absolute_url()).text
    assert "Where is my refund?" in timeline
    assert "1 encrypted item," in timeline
    assert "partly encrypted" in timeline
    rows = operator.get(reverse("sessions:list")).text
    assert "Where is my refund?" in rows
    assert "Partly encrypted" in rows
    found = operator.post(reverse("sessions:search"), {"q": "refund", "filters": ""}, follow=True)
    assert "my <mark>refund</mark>" in found.text


def test_nothing_here_ever_pops() -> None:
    """On most stores `pop_item` through a wrong key destroys what it cannot read."""
    assert not hasattr(Backend, "pop_item")
    for module in Path(sessions_app.__file__).parent.rglob("*.py"):
        assert ".pop_item(" not in module.read_text(), module
