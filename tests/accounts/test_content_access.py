"""What was said is shown for a purpose that was stated, and not by the hundred."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django.fixtures import Settings

from memadmin import audit
from memadmin.accounts.content_access import rules
from memadmin.audit.log import types
from memadmin.audit.log.ids import kind_of
from memadmin.audit.log.types import openings
from memadmin.audit.models import AuditEvent
from sessions_app.masked_reader import reader_for
from sessions_app.models import SessionRecord, SessionStore, TextSearch
from sessions_app.search.remembered import remember_search
from tests.accounts.test_confirming import kept
from tests.agents import add_items
from tests.people import person, signed_in

STATED = {"purpose-code": "customer_case", "purpose-ticket": "T-1 <b>"}
PURPOSE = "/accounts/purpose/"


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    """As in a process that has just started."""
    rules._opened.clear()
    yield
    rules._opened.clear()


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", "zebra finch")
    return SessionRecord.objects.get()


@pytest.fixture
def asked(settings: Settings) -> None:
    settings.PURPOSE_REQUIRED = True


def records(count: int) -> list[SessionRecord]:
    for number in range(count):
        add_items(f"s{number}", "hello")
    return list(SessionRecord.objects.order_by("session_id"))


def reader_of(browser: Client) -> User:
    return User.objects.get(pk=browser.session["_auth_user_id"])


def told(event_type: str) -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(type=event_type).order_by("number"))


@pytest.mark.usefixtures("asked")
class TestPurpose:
    def test_reading_takes_a_purpose(self, record: SessionRecord, operator: Client) -> None:
        away: Any = operator.get(record.get_absolute_url())
        assert away["Location"] == f"{PURPOSE}?{urlencode({'next': record.get_absolute_url()})}"
        assert not told("session.viewed")
        question = operator.get(away["Location"])
        assert kept(question.text)["next"] == [record.get_absolute_url()]
        back = operator.post(PURPOSE, kept(question.text) | STATED)
        assert back["Location"] == record.get_absolute_url()
        page = operator.get(record.get_absolute_url())
        assert "zebra finch" in page.text
        assert "Customer support · T-1 &lt;b&gt;" in page.text
        (event,) = told("session.viewed")
        assert event.reason_code == "customer_case"
        assert not hasattr(event, "detail")

    def test_the_ticket_stands_beside_the_event_of_the_purpose(self, operator: Client, db: None) -> None:
        operator.post(PURPOSE, STATED)
        (event,) = told("purpose.stated")
        assert (event.reason_code, json.loads(event.detail.details)) == ("customer_case", {"ticket": "T-1 <b>"})

    def test_it_counts_for_some_hours(self, record: SessionRecord, operator: Client, settings: Settings) -> None:
        settings.PURPOSE_LIMIT = timedelta(0)
        operator.post(PURPOSE, STATED)
        assert operator.get(record.get_absolute_url()).status_code == 302

    def test_one_persons_is_not_anothers(self, record: SessionRecord, operator: Client, reviewer: Client) -> None:
        operator.post(PURPOSE, STATED)
        assert reviewer.get(record.get_absolute_url()).status_code == 302

    @pytest.mark.parametrize("sent", [{}, {"purpose-code": "because"}, {"purpose-ticket": "T-1"}])
    def test_what_is_none_is_asked_again(self, operator: Client, db: None, sent: dict[str, str]) -> None:
        page = operator.post(PURPOSE, sent)
        assert page.status_code == 422
        assert "purpose" in page.text
        assert ('value="T-1"' in page.text) == ("purpose-ticket" in sent)
        assert not told("purpose.stated")

    def test_every_way_to_what_was_said_asks(self, record: SessionRecord, operator: Client) -> None:
        item_id = reader_for(record.store).first_page(record.session_id, 1).items[0].id
        for name, arguments in (
            ("sessions:timeline", [record.pk]),
            ("sessions:item", [record.pk, item_id]),
            ("sessions:export-jsonl", [record.pk]),
            ("sessions:export-markdown", [record.pk]),
        ):
            answer = operator.get(reverse(name, args=arguments))
            assert answer.status_code == 302, name
            assert answer["Location"].startswith(PURPOSE), name
        assert not AuditEvent.objects.filter(type__in=openings()).exists()

    def test_a_search_asks_first_and_then_searches(self, record: SessionRecord, operator: Client) -> None:
        """The words are kept in the page of the question, and are in no address."""
        for address, more in (
            (reverse("sessions:search"), {}),
            (reverse("sessions:search"), {"filters": "store=main"}),
            (reverse("sessions:find", args=[record.pk]), {}),
        ):
            browser = signed_in(reader_of(operator))
            question = browser.post(address, {"q": 'zebra "finch', **more})
            assert (question.status_code, TextSearch.objects.count()) == (422, 0)
            assert kept(question.text)["q"] == ['zebra "finch']
            found = browser.post(address, kept(question.text) | STATED)
            assert "zebra" not in found["Location"]
            assert TextSearch.objects.get().text == 'zebra "finch'
            TextSearch.objects.all().delete()

    def test_what_a_search_found_asks(self, record: SessionRecord, operator: Client) -> None:
        """Also where nothing is found, before it searches."""
        for word in ("zebra", "nothing"):
            search = remember_search(reader_of(operator), word)
            results = reverse("sessions:search-results", args=[search.pk])
            for address in (results, f"{reverse('sessions:list')}?search={search.pk}", f"{results}messages/"):
                asked: Any = operator.get(address)
                assert asked["Location"].startswith(PURPOSE)
            part = operator.get(f"{results}messages/", headers={"HX-Request": "true"})
            assert part["HX-Redirect"].startswith(PURPOSE)
            onward = operator.get(reverse("sessions:find-next", args=[record.pk, search.pk]))
            assert onward["Location"].startswith(PURPOSE)
        assert not told("search.shown")

    def test_what_a_search_found_is_recorded_with_its_purpose(self, record: SessionRecord, operator: Client) -> None:
        address = f"{reverse('sessions:list')}?search={remember_search(reader_of(operator), 'zebra').pk}"
        asked: Any = operator.get(address)
        assert asked["Location"].startswith(PURPOSE)
        operator.post(PURPOSE, STATED)
        assert "finch" in operator.get(address).text
        (event,) = told("search.shown")
        assert (event.reason_code, event.shown, event.counters) == ("customer_case", [record.pk], {"sessions": 1})

    def test_a_form_goes_out_again_with_the_purpose(self, record: SessionRecord, operator: Client) -> None:
        address = reverse("sessions:reveal-session", args=[record.pk])
        page = operator.post(address, {"reason": "customer_case"})
        assert page.status_code == 422
        assert "zebra finch" not in page.text
        assert kept(page.text)["reason"] == ["customer_case"]
        shown = operator.post(address, kept(page.text) | STATED)
        assert "zebra finch" in shown.text
        assert len(told("session.revealed")) == 1

    def test_a_program_is_told_in_its_own_words(self, record: SessionRecord, operator: Client) -> None:
        answer = operator.get(record.get_absolute_url(), headers={"Accept": "application/json"})
        assert (answer.status_code, "error" in answer.json()) == (403, True)

    def test_it_leads_nowhere_else(self, operator: Client, db: None) -> None:
        answer = operator.post(PURPOSE, STATED | {"next": "https://elsewhere.example/"})
        assert answer["Location"] == "/"

    def test_lists_and_the_rest_ask_for_none(self, record: SessionRecord, operator: Client) -> None:
        for name in ("sessions:list", "sessions:overview", "sessions:subjects"):
            assert operator.get(reverse(name)).status_code == 200, name


def test_nobody_is_asked_where_it_is_optional(record: SessionRecord, operator: Client) -> None:
    assert operator.get(record.get_absolute_url()).status_code == 200
    assert told("session.viewed")[0].reason_code == ""
    operator.post(PURPOSE, STATED)
    operator.get(record.get_absolute_url())
    assert told("session.viewed")[1].reason_code == "customer_case"


class TestAmount:
    @pytest.fixture(autouse=True)
    def few(self, settings: Settings, kept_main_store: SessionStore) -> None:
        settings.READ_NOTICE, settings.READ_LIMIT = 2, 3

    def test_the_limit_counts_sessions_and_says_when_it_ends(self, operator: Client) -> None:
        *opened, last = records(4)
        for record in (*opened, *opened):
            assert operator.get(record.get_absolute_url()).status_code == 200
        page = operator.get(last.get_absolute_url())
        assert page.status_code == 429
        assert 3500 < int(page["Retry-After"]) <= 3600
        assert "You have opened, or asked to unlock, 3 sessions within an hour" in page.text
        assert "The next one is possible in 60 minutes." in page.text
        assert "hello" not in page.text
        assert [event.object_ref for event in told("session.viewed")] == [record.pk for record in (*opened, *opened)]
        (event,) = told("reading.stopped")
        assert (event.outcome, event.counters) == ("denied", {"sessions": 3})
        assert operator.get(opened[0].get_absolute_url()).status_code == 200, "what is open stays open"

    def test_compliance_is_told_before_and_once(self, operator: Client) -> None:
        for record in records(3):
            assert operator.get(record.get_absolute_url()).status_code == 200
        (event,) = told("reading.noticed")
        assert event.counters == {"sessions": 2}
        assert event.object_kind == "auth.user"

    def test_an_hour_later_all_is_open_again(self, operator: Client, settings: Settings) -> None:
        *opened, last = records(4)
        for record in opened:
            operator.get(record.get_absolute_url())
        settings.READ_WINDOW = timedelta(0)
        assert operator.get(last.get_absolute_url()).status_code == 200

    def test_everybody_has_their_own(self, operator: Client, reviewer: Client) -> None:
        for record in records(3):
            operator.get(record.get_absolute_url())
        assert reviewer.get(record.get_absolute_url()).status_code == 200

    def test_files_and_reveals_count(self, operator: Client) -> None:
        *opened, last = records(4)
        for record in opened:
            operator.get(reverse("sessions:export-jsonl", args=[record.pk]))
        assert operator.get(reverse("sessions:export-jsonl", args=[last.pk])).status_code == 429
        refused = operator.post(reverse("sessions:reveal-session", args=[last.pk]), {"reason": "legal"})
        assert refused.status_code == 429
        assert not told("session.revealed")

    def test_an_event_counts_that_says_so_of_itself(self, operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whatever it is called: the rule knows no names of events."""
        (record,) = records(1)
        person = User.objects.get(pk=operator.session["_auth_user_id"])
        for name, counts in (("session.passed_by", False), ("session.peeked_at", True)):
            peeked = audit.EventType(name, "Somebody did.", object=kind_of(record), counts_as_opening=counts)
            monkeypatch.setitem(types._registry, name, peeked)
            audit.record_alone(peeked, by=person, target=record)
            assert [ref for ref, _ in rules.opened_lately(person)] == [record.pk] * counts

    def test_all_ways_into_a_session_count(self, operator: Client) -> None:
        (record,) = records(1)
        person = User.objects.get(pk=operator.session["_auth_user_id"])
        item_id = reader_for(record.store).first_page(record.session_id, 1).items[0].id
        for address in (
            record.get_absolute_url(),
            reverse("sessions:item", args=[record.pk, item_id]),
            reverse("sessions:item", args=[record.pk, item_id], query={"download": "1"}),
            reverse("sessions:export-jsonl", args=[record.pk]),
        ):
            before = rules.opened_lately(person)
            assert operator.get(address).status_code == 200
            assert rules.opened_lately(person) != before, address

    def test_other_processes_count_too(self, operator: Client) -> None:
        *opened, last = records(4)
        for record in opened:
            operator.get(record.get_absolute_url())
            rules._opened.clear()  # what only this process knew
        assert operator.get(opened[0].get_absolute_url()).status_code == 200
        assert operator.get(last.get_absolute_url()).status_code == 429

    def test_counting_in_each_process_alone_would_let_more_through(
        self, operator: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The broken variant: a count that a new process begins anew."""
        monkeypatch.setattr(rules, "opened_lately", lambda reader: [(key[1], at) for key, at in rules._opened.items()])
        for record in records(4):
            assert operator.get(record.get_absolute_url()).status_code == 200
            rules._opened.clear()

    def test_at_the_same_moment_no_more_pass_than_ask(self) -> None:
        person("support")
        several = records(8)

        def read(record: SessionRecord) -> int:
            client = signed_in(User.objects.get(username="support"))
            try:
                return client.get(record.get_absolute_url()).status_code
            finally:
                connections.close_all()

        with ThreadPoolExecutor(4) as threads:
            statuses = list(threads.map(read, several))
        assert 3 <= statuses.count(200) <= 3 + 4 - 1
        assert statuses.count(200) + statuses.count(429) == len(several)

    def test_going_on_in_a_session_costs_nothing(self, operator: Client) -> None:
        (record,) = records(1)
        operator.get(record.get_absolute_url())
        with CaptureQueriesContext(connection) as queries:
            operator.get(record.get_absolute_url())
        assert not [query for query in queries if 'MAX("audit_event"."at")' in query["sql"]]
