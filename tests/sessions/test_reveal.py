"""What is masked stays so wherever a session is shown; revealing is an act, recorded before anything is seen."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from memadmin import audit
from memadmin.audit.models import AuditEvent
from sessions_app import listing
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services import revealing
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionPreview
from sessions_app.views import revealing as reveal_views
from sessions_app.views.window import PAGE_ITEMS
from tests.agents import add_items, user

CARD, MAIL = "4242 4242 4242 4242", "anna@example.com"
PAY = {"type": "function_call", "call_id": "a", "name": "pay", "arguments": json.dumps({"card": CARD, "mail": MAIL})}


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", f"My card is {CARD}, write to {MAIL}")
    add_items("s", PAY, {"type": "function_call_output", "call_id": "a", "output": f"paid with {CARD}"})
    return SessionRecord.objects.get(session_id="s")


@pytest.fixture
def item_id(record: SessionRecord, operator: Client) -> str:
    return str(operator.get(record.get_absolute_url()).context["page"].items[0].id)


def everything(response: Any) -> str:
    content: bytes = b"".join(response) if response.streaming else response.content
    return content.decode()


def ask(client: Client, record: SessionRecord, item_id: str, reason: str = "payment", **more: str) -> Any:
    return client.post(reverse("sessions:reveal", args=[record.pk, item_id]), {"reason": reason, **more})


def places(client: Client, record: SessionRecord) -> dict[str, str]:
    """Every place where somebody reads of a session, with what it says."""
    page = client.get(record.get_absolute_url())
    item = page.context["page"].items[0].id
    searched = client.post(reverse("sessions:search"), {"q": "write"})["Location"]
    found = client.post(reverse("sessions:find", args=[record.pk]), {"q": "card"})["Location"]
    addresses = {
        "timeline": record.get_absolute_url(),
        "live": f"{reverse('sessions:live', args=[record.pk])}?state=old",
        "find": found.partition("#")[0],
        "item": reverse("sessions:item", args=[record.pk, item]),
        "item file": f"{reverse('sessions:item', args=[record.pk, item])}?download",
        "jsonl": reverse("sessions:export-jsonl", args=[record.pk]),
        "markdown": reverse("sessions:export-markdown", args=[record.pk]),
        "overview": reverse("sessions:overview"),
        "list": reverse("sessions:list"),
        "list of what was said": f"{reverse('sessions:list')}?search={searched.rstrip('/').rpartition('/')[2]}",
        "search": f"{searched}messages/",
    }
    said = {}
    for name, address in addresses.items():
        response = client.get(address)
        assert response.status_code == 200, name
        said[name] = everything(response)
    return said


def assert_masked(said: dict[str, str]) -> None:
    for name, text in said.items():
        assert "•••• 4242" in text or "••••@example.com" in text, f"{name} does not show the item at all"
        for piece in ("4242 4242", "42424242", "anna"):
            assert piece not in text, f"{piece} in {name}"


@pytest.mark.parametrize("role", ["operator", "reviewer"])
def test_values_are_masked_wherever_a_session_is_shown(
    role: str, record: SessionRecord, request: pytest.FixtureRequest
) -> None:
    assert_masked(places(request.getfixturevalue(role), record))


@pytest.mark.parametrize("broken", ["item", "text"])
def test_a_place_that_forgets_to_mask_is_noticed(
    broken: str, record: SessionRecord, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Masker, broken, lambda self, value: value)
    with pytest.raises(AssertionError):
        assert_masked(places(operator, record))


def test_the_timeline_says_how_many_values_are_masked_and_where_to_see_them(
    record: SessionRecord, operator: Client, item_id: str
) -> None:
    page = operator.get(record.get_absolute_url()).text
    assert f'/items/{item_id}/#reveal">2 masked</a>' in page
    assert '<span class="masked">card •••• 4242</span>' in page


def test_revealing_shows_the_item_once_and_is_recorded_with_its_reason(
    record: SessionRecord, operator: Client, item_id: str
) -> None:
    page = ask(operator, record, item_id)

    assert page.status_code == 200
    assert CARD in page.text
    assert MAIL in page.text
    assert "no-store" in page["Cache-Control"]
    event = AuditEvent.objects.get(type="session.revealed")
    assert (event.object_ref, event.reason_code) == (record.pk, "payment")
    assert event.counters == {"items": 1, "values": 2}
    assert CARD not in operator.get(reverse("sessions:item", args=[record.pk, item_id])).text


def test_the_file_of_an_item_can_be_revealed_too(record: SessionRecord, operator: Client, item_id: str) -> None:
    answer = ask(operator, record, item_id, download="yes")
    assert json.loads(everything(answer)) == user(f"My card is {CARD}, write to {MAIL}")
    assert answer["Content-Disposition"].startswith("attachment")
    assert AuditEvent.objects.filter(type="session.revealed").count() == 1


@pytest.mark.parametrize("reason", ["", "curiosity"])
def test_without_a_reason_nothing_is_revealed(
    record: SessionRecord, operator: Client, item_id: str, reason: str
) -> None:
    answer = ask(operator, record, item_id, reason)
    assert answer.status_code == 422
    assert CARD not in answer.text
    assert not AuditEvent.objects.filter(type="session.revealed").exists()


def test_who_may_read_may_not_reveal(record: SessionRecord, reviewer: Client, operator: Client, item_id: str) -> None:
    answer = ask(reviewer, record, item_id)
    assert answer.status_code == 403
    assert CARD not in answer.text
    item = reviewer.get(reverse("sessions:item", args=[record.pk, item_id])).text
    assert "Your role sees card numbers" in item
    assert "Reveal values" not in item


def test_reading_by_address_reveals_nothing(record: SessionRecord, operator: Client, item_id: str) -> None:
    assert operator.get(reverse("sessions:reveal", args=[record.pk, item_id])).status_code == 405


def test_unknown_item_cannot_be_revealed(record: SessionRecord, operator: Client) -> None:
    assert ask(operator, record, "999999999").status_code == 404


def test_without_the_log_nothing_is_revealed(
    record: SessionRecord, operator: Client, item_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **columns: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(import_module("memadmin.audit.log.recording"), "_write", fails)
    answer = ask(operator, record, item_id)
    assert answer.status_code == 503
    assert CARD not in answer.text


def test_a_reveal_that_shows_first_and_records_later_is_noticed(
    record: SessionRecord, operator: Client, item_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shows_first(record: SessionRecord, item_id: str, **columns: Any) -> Any:
        try:
            return revealing.reveal_item(record, item_id, **columns)
        except audit.AuditUnavailable:
            return backend_for(record.store).item(record.session_id, item_id)

    monkeypatch.setattr(reveal_views, "reveal_item", shows_first)
    with pytest.raises(AssertionError):
        test_without_the_log_nothing_is_revealed(record, operator, item_id, monkeypatch)


def test_words_of_a_list_are_cut_only_after_they_are_masked() -> None:
    words = f"{'x' * 140} {CARD} and more words than are shown"
    preview = listing.masked(SessionPreview(1, words), Masker())
    assert "4242 4242" not in preview.first_user_text
    assert len(preview.first_user_text) <= 160


def reveal_all(client: Client, record: SessionRecord, reason: str = "payment", **more: str) -> Any:
    return client.post(reverse("sessions:reveal-session", args=[record.pk]), {"reason": reason, **more})


def revealed_events() -> list[tuple[str, dict[str, int]]]:
    events = AuditEvent.objects.filter(type="session.revealed").order_by("number")
    return [(event.reason_code, event.counters) for event in events]


def test_a_session_is_revealed_as_one_act(record: SessionRecord, operator: Client) -> None:
    before = operator.get(record.get_absolute_url())
    assert "Reveal 5 values" in " ".join(before.text.split())
    page = reveal_all(operator, record)
    assert page.status_code == 200
    assert CARD in page.text
    assert MAIL in page.text
    assert "no-store" in page["Cache-Control"]
    assert revealed_events() == [("payment", {"items": 3, "values": 5})]
    assert AuditEvent.objects.get(type="session.revealed").object_ref == record.pk


def test_it_ends_with_the_page(record: SessionRecord, operator: Client) -> None:
    kept = dict(operator.session)
    page = reveal_all(operator, record)
    assert "hx-get" not in page.text.partition('id="timeline"')[2].partition(">")[0], "it would be masked again, unseen"
    assert dict(operator.session) == kept
    assert_masked(places(operator, record))


def test_further_pages_are_acts_of_their_own(record: SessionRecord, operator: Client) -> None:
    for number in range(0, PAGE_ITEMS, 10):
        add_items("s", *[f"Write to guest{number + place}@example.com" for place in range(10)])
    first = reveal_all(
        operator, record, at=operator.get(record.get_absolute_url(), {"start": ""}).context["page_cursor"]
    )
    assert "guest0@" in first.text
    assert "guest99@" not in first.text
    second = reveal_all(operator, record, at=first.context["later"])
    assert "guest99@" in second.text
    assert [counters["items"] for _, counters in revealed_events()] == [93, 10]
    assert CARD in reveal_all(operator, record, at=second.context["earlier"]).text
    assert CARD not in operator.get(second.context["earlier_url"]).text


def test_a_page_without_masks_offers_nothing_to_reveal(kept_main_store: SessionStore, operator: Client) -> None:
    add_items("s", "Good morning")
    assert "Reveal" not in operator.get(SessionRecord.objects.get().get_absolute_url()).text


@pytest.mark.parametrize("reason", ["", "curiosity"])
def test_without_a_reason_no_session_is_revealed(record: SessionRecord, operator: Client, reason: str) -> None:
    answer = reveal_all(operator, record, reason)
    assert answer.status_code == 422
    assert CARD not in answer.text
    assert "reason" in answer.context["problem"]
    assert not revealed_events()


def test_who_may_read_may_not_reveal_a_session(record: SessionRecord, reviewer: Client) -> None:
    assert reveal_all(reviewer, record).status_code == 403
    assert "Reveal" not in reviewer.get(record.get_absolute_url()).text
    assert reviewer.get(reverse("sessions:reveal-session", args=[record.pk])).status_code == 405


def test_a_session_is_revealed_to_who_showed_who_they_are(record: SessionRecord, operator: Client) -> None:
    session = operator.session
    session["confirmed_at"] -= 301
    session.save()
    asked = reveal_all(operator, record)
    assert asked.status_code == 422
    assert CARD not in asked.text
    assert not revealed_events()


def test_a_place_that_was_made_up_reveals_the_start_and_says_so(record: SessionRecord, operator: Client) -> None:
    answer = reveal_all(operator, record, at="made-up")
    assert answer.status_code == 400
    assert "The link is incomplete or was changed" in answer.text


def test_without_the_log_no_session_is_revealed(
    record: SessionRecord, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*args: Any, **columns: Any) -> None:
        raise OperationalError

    monkeypatch.setattr(import_module("memadmin.audit.log.recording"), "_write", fails)
    answer = reveal_all(operator, record)
    assert answer.status_code == 503
    assert CARD not in answer.text


def test_a_session_that_is_shown_first_and_recorded_later_is_noticed(
    record: SessionRecord, operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shows_first(record: SessionRecord, page: Any, **columns: Any) -> Any:
        try:
            return revealing.reveal_page(record, page, **columns)
        except audit.AuditUnavailable:
            return backend_for(record.store).first_page(record.session_id, PAGE_ITEMS)

    monkeypatch.setattr(reveal_views, "reveal_page", shows_first)
    with pytest.raises(AssertionError):
        test_without_the_log_no_session_is_revealed(record, operator, monkeypatch)
