"""The list of redactions: who waits for whom, what is in progress, and what was done or refused."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memadmin.home.notifications import notifications_of
from memadmin.home.parts import what_waits
from sessions_app.models import SessionRecord
from sessions_app.redaction import services
from tests.approvals import expire
from tests.people import person, signed_in
from tests.runs.working import work_off
from tests.sessions.redacting.test_redaction_approval import LIMIT, ask, officer, record, second, session_with

__all__ = ["officer", "record", "second"]  # fixtures

LIST = reverse("sessions:redactions")


def page_for(user: User, query: str = "") -> str:
    page = signed_in(user).get(LIST + query)
    assert page.status_code == 200
    return page.text.split('id="main"')[1].split("</main>")[0]


def section(page: str, of: str) -> str:
    return " ".join(page.split(f'aria-labelledby="{of}"')[1].split("</section>")[0].split())


def test_a_waiting_redaction_names_who_waits_for_whom(record: SessionRecord, officer: User, second: User) -> None:
    record.ticket = "T-90456"
    record.save(update_fields=["ticket"])
    asked = ask(record, officer)
    mine, theirs = (section(page_for(user), "waiting") for user in (officer, second))
    for shown in (mine, theirs):
        assert "T-90456" in shown
        assert asked.get_absolute_url() in shown
        assert f"{LIMIT + 1} places" in shown
        assert "requested by compliance" in shown
    assert "Waits for compliance-support" in mine
    assert "Decide" not in mine
    assert "Waits for you" in theirs
    assert "Decide" in theirs


def test_nobody_else_may_approve(record: SessionRecord, officer: User) -> None:
    ask(record, officer)
    assert "No other person may approve" in section(page_for(officer), "waiting")


def test_another_account_of_the_requester_is_not_waited_for(record: SessionRecord, officer: User, second: User) -> None:
    User.objects.filter(pk__in=(officer.pk, second.pk)).update(email="kim@example.com")
    officer.refresh_from_db()
    ask(record, officer)
    second.refresh_from_db()
    shown = section(page_for(second), "waiting")
    assert "No other person may approve" in shown
    assert "Decide" not in shown


def test_home_and_bell_lead_those_who_may_approve_to_it(record: SessionRecord, officer: User, second: User) -> None:
    asked = ask(record, officer)
    titles = [each.title for each in what_waits(second)[0]]
    assert "1 large redaction to decide" in titles
    (notified,) = [each for each in notifications_of(second).shown if each.entry.url == LIST]
    assert not notified.is_read
    for user in (officer, person("support")):
        assert not [each for each in what_waits(user)[0] if each.url == LIST]
    expire(asked)
    assert not [each for each in what_waits(second)[0] if each.url == LIST]


def test_done_and_refused_are_told_apart_and_filtered(record: SessionRecord, officer: User, second: User) -> None:
    refused = ask(record, officer)
    services.decline_redaction(refused, by=second)
    done = ask(session_with(1, "few"), officer, typed="")
    running = ask(session_with(1, "running"), officer, typed="")
    page = page_for(officer)
    assert running.get_absolute_url() in section(page, "in-progress")
    work_off()
    both = section(page_for(officer), "ended")
    assert "bg-green-lt" in both
    assert "refused" in both
    only = section(page_for(officer, "?state=refused"), "ended")
    assert refused.get_absolute_url() in only
    assert done.get_absolute_url() not in only
    only = section(page_for(officer, "?state=done"), "ended")
    assert refused.get_absolute_url() not in only
    assert done.get_absolute_url() in only
    assert signed_in(officer).get(f"{LIST}?state=x").status_code == 400


def test_the_text_is_not_in_the_list(record: SessionRecord, officer: User) -> None:
    asked = ask(record, officer)
    assert asked.text
    assert asked.text not in page_for(officer)


def test_more_redactions_cost_no_more_queries(
    record: SessionRecord, officer: User, second: User, settings: Any
) -> None:
    console, counts = signed_in(second), []
    for start in (0, 1):
        for number in range(start, start * 6 + 1):
            services.decline_redaction(ask(session_with(LIMIT + 1, f"declined {number}"), officer), by=second)
            ask(session_with(LIMIT + 1, f"waiting {number}"), officer)
        console.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            assert console.get(LIST).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]
