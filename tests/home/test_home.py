"""The home page of each role: what waits, what changed, charts and cards; and what happens when a source fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts import reauth
from memadmin.audit.models import AuditVerdict
from memadmin.home import parts
from memadmin.home.charts import Chart, Series, day_labels
from memadmin.home.day_counts import count_days, last_days
from memadmin.home.parts import HomePage, HomeParts, Waiting, home_page, on_home
from memadmin.retention.holds.services import request_release
from memadmin.runs.models import Run
from memories_app.models import Memory, Signal
from sessions_app.models import SessionStore, Subject
from tests.builders import make_session, make_store, make_subject
from tests.erasure.builders import awaiting
from tests.memories.builders import proposed
from tests.people import person, signed_in
from tests.retention.builders import make_hold
from tests.sessions.stores import stores

__all__ = ["stores"]

pytestmark = pytest.mark.usefixtures("days_counted_before", "stores")

ADDRESS = reverse("sessions:overview")

ROLES = ("support", "reviewer", "compliance", "auditor", "administrator")

CHARTS = {
    "support": ["sessions-per-day", "items-per-day"],
    "reviewer": ["decisions-per-day", "age-of-queue", "wait-per-day", "recalls-per-day"],
    "compliance": ["requests-by-days-left", "retention-per-night"],
    "auditor": ["events-per-day"],
    "administrator": ["sessions-per-day", "items-per-day"],
}

CARDS = {"support": "sessions/_stores_card.html", "administrator": "sessions/_stores_card.html"} | {
    "auditor": "audit/_verification_card.html"
}


@pytest.fixture(scope="module")
def days_counted_before(shared_world: None) -> None:
    """An empty console whose days were counted: what a test adds is counted as of today alone."""
    count_days()


def home(client: Client) -> HomePage:
    page = client.get(ADDRESS)
    assert page.status_code == 200
    shown: HomePage = page.context["home"]
    return shown


def titles(client: Client) -> list[str]:
    return [entry.title for entry in home(client).waiting]


@pytest.mark.parametrize("role", ROLES)
def test_each_role_has_its_charts_and_cards_on_an_empty_console(role: str) -> None:
    client = signed_in(person(role))
    page = client.get(ADDRESS)
    shown = page.context["home"]
    assert shown.failed == []
    assert sorted(chart.id for chart in shown.charts) == sorted(CHARTS[role])
    assert all(chart.is_empty for chart in shown.charts if chart.id != "events-per-day")
    assert [card.template for card in shown.cards] == ([CARDS[role]] if role in CARDS else [])
    assert "<canvas" not in page.text, "there is nothing to draw"
    for chart in shown.charts:
        assert chart.empty in page.text


@pytest.mark.parametrize("role", ["support", "reviewer", "compliance", "administrator"])
def test_a_first_visit_says_that_nothing_waits(role: str) -> None:
    client = signed_in(person(role))
    client.get(ADDRESS)
    assert titles(client) == [], role
    assert "Nothing waits for you" in client.get(ADDRESS).text


def test_each_entry_and_each_chart_leads_where_the_person_may_go() -> None:
    everything_waits()
    faults = []
    for role in ROLES:
        client = signed_in(person(role))
        shown = home(client)
        assert shown.failed == [], role
        assert shown.waiting or role == "administrator", role
        for entry in shown.waiting:
            # No agent has written to the store of this session.
            if entry.action != "Open session" and client.get(entry.url).status_code != 200:
                faults.append((role, entry))
    assert faults == []


def everything_waits() -> None:
    """Something of each kind, by other people than those who are asked."""
    other, second = person("compliance", "support"), person("compliance", "reviewer")
    store = make_store(state=SessionStore.State.DOWN, checked_at=now())
    subject = make_subject("whom")
    record = make_session("with findings", store=store, finding_count=1)
    make_session("fine", store=store, subject=subject)
    make_hold(record, by=other)
    hold = make_hold(subject, by=other)
    request_release(hold, reason="It is over", by=second)
    awaiting(make_subject("who asks"), by=other, received_on=now().date() - timedelta(days=60))
    old = proposed("Drinks tea.")
    Memory.objects.filter(pk=old.pk).update(awaiting_since=now() - timedelta(days=9))
    proposed("Shared.", subject=None)
    Signal.objects.create(record_id=record.pk, kind="feedback", value=-1, text="Wrong refund date", given_by=other)
    Run.objects.create(kind="retention", state="stopped", reason="Twice its preview.")
    AuditVerdict.objects.create(verdict="broken", size=1, findings=[{"kind": "deletion"}])
    count_days()


def test_support_sees_findings_feedback_and_stores(operator: Client) -> None:
    everything_waits()
    assert titles(operator) == [
        "Store main is unreachable",
        "1 session with findings",
        "1 session without a subject",
        "An answer has negative feedback",
    ]
    assert "Wrong refund date" not in operator.get(ADDRESS).text, "content has an event"
    assert home(operator).changes == ["2 sessions, 0 items"]


def test_compliance_sees_what_needs_a_second_person(compliance: Client) -> None:
    everything_waits()
    found = titles(compliance)
    for words in (
        "The audit log was changed",
        "Store main is unreachable",
        "is overdue",
        "1 proposal past the review target",
        "Retention run",
        "1 erasure to decide",
        "1 hold release to decide",
    ):
        assert sum(words in title for title in found) == 1, (words, found)


def test_nobody_is_asked_about_their_own_request() -> None:
    officer = person("compliance")
    awaiting(make_subject("who asks"), by=officer)
    request_release(make_hold(make_subject("whom"), by=officer), reason="It is over", by=officer)
    for asked, count in ((signed_in(officer), 0), (signed_in(person("compliance", "reviewer")), 1)):
        found = titles(asked)
        assert found.count("1 erasure to decide") == count
        assert found.count("1 hold release to decide") == count


def test_administrators_see_stores_and_runs_and_no_session(administrator: Client) -> None:
    everything_waits()
    assert titles(administrator) == [f"Retention {Run.objects.get()} stopped", "Store main is unreachable"]
    assert "with findings" not in administrator.get(ADDRESS).text


def test_the_most_urgent_waits_first(compliance: Client) -> None:
    everything_waits()
    colours = [parts.URGENCY.index(entry.colour) for entry in home(compliance).waiting]
    assert colours == sorted(colours)


def test_the_chart_has_its_figures_in_a_table(operator: Client) -> None:
    store = make_store("hotline")
    make_session(store=store)
    count_days()
    page = operator.get(ADDRESS)
    assert '<canvas data-chart="sessions-per-day"' in page.text
    assert "<caption" in page.text
    chart = next(chart for chart in home(operator).charts if chart.id == "sessions-per-day")
    assert [(series.label, series.values[-1], sum(series.values)) for series in chart.series] == [("hotline", 1, 1)]
    assert chart.rows[-1] == (chart.row_labels[-1], [1])
    assert "1 session in 30 days, 1 today" in chart.sentence
    assert page.text.count('<th scope="row">') == 30


def test_stores_beyond_the_third_are_one_series(operator: Client) -> None:
    for number in range(5):
        store = make_store(f"store-{number}")
        for _ in range(5 - number):
            make_session(store=store)
    count_days()
    chart = home(operator).charts[0]
    assert [(series.label, series.values[-1]) for series in chart.series] == [
        ("store-0", 5),
        ("store-1", 4),
        ("store-2", 3),
        ("2 more", 3),
    ]


QUERIES = {"support": 23, "reviewer": 23, "compliance": 43, "auditor": 19, "administrator": 18}


def test_ten_of_everything_cost_what_one_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first page of each minute notes that somebody is still there: on a slow machine it could be any.
    monkeypatch.setattr(reauth, "USE_SECONDS", 10**9)
    everything_waits()
    clients = {role: signed_in(person(role)) for role in ROLES}
    subject = Subject.objects.first()

    def costs() -> dict[str, int]:
        counts = {}
        for role, client in clients.items():
            client.get(ADDRESS)
            with CaptureQueriesContext(connection) as queries:
                client.get(ADDRESS)
            counts[role] = len(queries)
        return counts

    assert costs() == QUERIES
    officer = User.objects.get(username="compliance-support")
    for number in range(10):
        make_session(f"more {number}", store=make_store(f"store-{number}"), subject=subject, finding_count=1)
        memory = proposed(f"Drinks {number}.", subject=subject)
        Memory.objects.filter(pk=memory.pk).update(awaiting_since=now() - timedelta(days=9))
        awaiting(make_subject(f"{number}"), by=officer, received_on=now().date() - timedelta(days=60))
        make_hold(make_subject(f"held {number}"), by=officer)
    count_days()
    assert costs() == QUERIES


@pytest.fixture
def sources() -> Iterator[list[Any]]:
    """The registered sources; those of a test are gone after it."""
    before = list(parts._sources)
    yield parts._sources
    parts._sources[:] = before


def test_a_source_that_fails_takes_nothing_else_away(operator: Client, sources: list[Any]) -> None:
    everything_waits()
    before = home(operator)

    @on_home("Broken thing", "sessions_app.read_content")
    def broken(user: User) -> HomeParts:
        raise OperationalError("the table is away")

    after = home(operator)
    assert [entry.title for entry in after.waiting] == [entry.title for entry in before.waiting]
    assert after.failed == ["Broken thing"]
    page = operator.get(ADDRESS)
    assert "Not available now: Broken thing." in page.text
    assert "the table is away" not in page.text


@pytest.mark.parametrize("role", ROLES)
def test_every_single_source_may_fail(role: str, sources: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(user: User) -> HomeParts:
        raise OperationalError("the table is away")

    sources[:] = [parts.HomeSource(each.title, each.permission, each.roles, broken) for each in sources]
    page = signed_in(person(role)).get(ADDRESS)
    assert page.status_code == 200
    assert "Not available now" in page.text
    assert "Nothing waits for you" not in page.text, "nobody knows"


def test_parts_are_for_those_who_may_see_them(db: Any, sources: list[Any]) -> None:
    sources.clear()
    entry = Waiting("Something", "/", "Look", "clock")

    @on_home("For reviewers of any role", "memories_app.review_memory")
    def by_permission(user: User) -> HomeParts:
        return HomeParts(waiting=[entry])

    @on_home("For the page of reviewers", "memories_app.review_memory", roles=("reviewer",))
    def by_role(user: User) -> HomeParts:
        return HomeParts(changes=["31 proposed"])

    seen = {role: home_page(person(role)) for role in ROLES}
    assert {role: (len(page.waiting), len(page.changes)) for role, page in seen.items()} == {
        "support": (0, 0),
        "reviewer": (1, 1),
        "compliance": (1, 0),
        "auditor": (0, 0),
        "administrator": (0, 0),
    }
    nobody = person()
    assert home_page(nobody).is_for_nobody
    User.objects.filter(pk=nobody.pk).update(is_superuser=True)
    assert len(home_page(User.objects.get(pk=nobody.pk)).changes) == 1, "without a role, permissions decide"


def test_a_chart_as_a_table_and_as_data() -> None:
    days = last_days(3, date(2026, 3, 2))
    chart = Chart("x", "Things", "Three things.", "Day", day_labels(days), [Series("A", "s1", [0, 1, 2])])
    assert chart.labels == ["28 Feb", "1 Mar", "2"]
    assert [values for _, values in chart.rows] == [[0], [1], [2]]
    assert json.loads(chart.figures)["series"] == [{"label": "A", "colour": "s1", "data": [0, 1, 2]}]
    assert not chart.is_empty
