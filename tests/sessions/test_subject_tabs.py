"""Tabs of a subject's page, which are addresses, and its line of time."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.accounts import reauth
from memadmin.audit.models import AuditEvent
from sessions_app.models import Subject
from tests.builders import make_session, make_subject
from tests.erasure.builders import make_request
from tests.memories.builders import approved, proposed
from tests.people import person, signed_in
from tests.sessions.stores import stores

__all__ = ["stores"]

pytestmark = pytest.mark.usefixtures("stores")


@pytest.fixture
def subject(db: None) -> Subject:
    subject = make_subject("cust_1")
    make_session("one", subject=subject, ticket="T-1")
    proposed("Drinks tea.", subject=subject)
    approved("Drinks coffee.", subject=subject, decided_at=now())
    make_request(subject, by=person("compliance", "support"))
    return subject


def tabs(page: Any) -> dict[str, str]:
    """Title and address of each tab; that of the open one begins with a star."""
    assert page.status_code == 200
    (navigation,) = re.findall(r'<nav class="nav-tabs-plain".*?</nav>', page.text, re.DOTALL)
    found = re.findall(r'<a href="([^"]*)"\s*(aria-current="page")?\s*>([^<]*)</a>', navigation)
    return {f"{'*' if current else ''}{title.strip()}": address for address, current, title in found}


def get(client: Client, subject: Subject, tab: str = "") -> Any:
    return client.get(subject.get_absolute_url(), {"tab": tab} if tab else {})


def test_each_role_has_the_tabs_that_it_may_open(subject: Subject) -> None:
    offered = {
        "support": ["*Sessions", "Memories"],
        "reviewer": ["*Sessions", "Memories"],
        "compliance": ["*Sessions", "Memories", "Requests", "Reads"],
        "administrator": ["*Sessions"],
    }
    for role, titles in offered.items():
        client = signed_in(person(role))
        assert list(tabs(get(client, subject))) == titles, role
        for title in ("memories", "requests", "reads"):
            expected = 200 if any(title == each.lower() for each in titles) else 404
            assert get(client, subject, title).status_code == expected, (role, title)


def test_a_tab_is_an_address_and_says_that_it_is_open(compliance: Client, subject: Subject) -> None:
    address = subject.get_absolute_url()
    for title, tab in (("Memories", "memories"), ("Requests", "requests"), ("Reads", "reads")):
        found = tabs(get(compliance, subject, tab))
        assert found[f"*{title}"] == f"{address}?tab={tab}"
        assert found["Sessions"] == address
    assert get(compliance, subject, "nonsense").status_code == 404


def test_each_tab_shows_its_part(compliance: Client, subject: Subject) -> None:
    assert "Words of one" in get(compliance, subject).text
    memories = get(compliance, subject, "memories").text
    assert "Drinks tea." in memories
    assert "Drinks coffee." in memories
    assert "Words of one" not in memories
    assert "received" in get(compliance, subject, "requests").text
    reads = get(compliance, subject, "reads")
    assert "compliance" in {read.who.label for read in reads.context["tab_panel"].shown["reads"]}
    assert "Readers in the last 30 days" in reads.text


def test_memories_are_shown_with_an_event(operator: Client, subject: Subject) -> None:
    get(operator, subject)
    assert not AuditEvent.objects.filter(type="memory.listed").exists()
    get(operator, subject, "memories")
    event = AuditEvent.objects.get(type="memory.listed")
    assert event.counters == {"memories": 2}
    assert subject.pk in event.shown
    assert AuditEvent.objects.filter(type="subject.viewed", subject_ref=subject.pk).count() == 2


def moments(page: Any) -> list[str]:
    assert page.status_code == 200
    return [moment.words for moment in page.context["moments"]]


def test_the_line_of_time_has_what_the_person_may_see(compliance: Client, operator: Client, subject: Subject) -> None:
    get(operator, subject)
    page = get(compliance, subject)
    found = moments(page)
    assert "Session T-1" in found
    assert found.count("Memory proposed") == 2
    assert "Memory approved" in found
    assert sum(words.startswith("Request DSR-") for words in found) == 1
    assert "Read by support" in found
    assert "Drinks" not in page.text, "content has an event"
    times = [moment.at for moment in page.context["moments"]]
    assert times == sorted(times, reverse=True)
    seen = moments(get(operator, subject))
    assert "Session T-1" in seen
    assert not [words for words in seen if words.startswith(("Request", "Read"))]
    assert moments(get(signed_in(person("administrator")), subject)) == []


def test_reads_of_a_day_are_one_entry(compliance: Client, operator: Client, subject: Subject) -> None:
    for _ in range(3):
        get(operator, subject)
    (entry,) = [moment for moment in get(compliance, subject).context["moments"] if moment.words == "Read by support"]
    assert entry.facts == "3 reads on this day"
    assert compliance.get(entry.url).status_code == 200


def test_more_of_everything_costs_no_query_more(
    compliance: Client, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first page of each minute notes that somebody is still there: on a slow machine it could be any.
    monkeypatch.setattr(reauth, "USE_SECONDS", 10**9)

    def cost(tab: str) -> int:
        get(compliance, subject, tab)
        with CaptureQueriesContext(connection) as queries:
            get(compliance, subject, tab)
        return len(queries)

    every = ("", "memories", "requests", "reads")
    before = [cost(tab) for tab in every]
    for number in range(5):
        make_session(f"more {number}", subject=subject)
        proposed(f"Drinks {number}.", subject=subject)
        get(compliance, subject)
    assert [cost(tab) for tab in every] == before
