"""The ledger of retention runs, the page of one run, and that of the tables: what they show, and to whom."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now

from memadmin.retention.models import SweepResult, SweptTable
from memadmin.retention.sweep.metrics import metrics_of, recent_runs
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, swept


def text(response: object) -> str:
    html = response.content.decode()  # type: ignore[attr-defined]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def html(response: object) -> str:
    """Django writes the CSRF token in another way each time."""
    shown = response.content.decode()  # type: ignore[attr-defined]
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", shown)


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance", "support")


def old_session(name: str, *items: str) -> None:
    add_items(name, *(items or ("text",)))
    age(name, timedelta(days=40))


def result_with(backlog: int, *, of: SweepResult) -> SweepResult:
    """Another run after that of a result, with the same policy and place, that left so many rows."""
    run = Run.objects.create(kind="retention", state="complete", started_at=now(), ended_at=now())
    return SweepResult.objects.create(
        run=run, version=of.version, place=of.place, state="done", taken=1, backlog=backlog, behind_since=now()
    )


def test_before_the_first_run(compliance: Client) -> None:
    page = text(compliance.get(reverse("sweeps:list")))
    assert "No run yet" in page
    assert "nothing is overdue" in page
    assert "none yet" in page


def test_the_ledger_says_what_each_run_did(kept_main_store: SessionStore, officer: User, compliance: Client) -> None:
    for name in ("held", "free"):
        old_session(name, "one", "two")
    make_hold(SessionRecord.objects.get(session_id="held"), by=officer)
    in_force("Chats")
    run = swept()
    page = text(compliance.get(reverse("sweeps:list")))
    assert f"{run} complete 1 2 items 1 2 items 1 0" in page
    assert "1 policy" in page


def test_a_run_says_what_it_took_left_and_why(kept_main_store: SessionStore, officer: User, compliance: Client) -> None:
    for name in ("held", "free"):
        old_session(name, "one", "two")
    make_hold(SessionRecord.objects.get(session_id="held"), by=officer)
    version = in_force("Chats")
    run = swept()
    SweepResult.objects.filter(run=run).update(
        left={"busy": 3}, backlog=4, behind_since=now() - timedelta(days=5, hours=1)
    )
    response = compliance.get(reverse("sweeps:run", args=[run.number]))
    page = text(response)
    assert "Chats version 1 done Sessions in main" in page
    assert "An agent held the session all the time. The next run includes it. (3)" in page
    assert "agent_messages 2 , agent_sessions 1 , sessions_app_sessionrecord 1" in page
    assert "4 for 5 days" in page
    assert reverse("policies:policy", args=[version.policy_id]) in html(response)
    assert "hx-trigger" not in html(response).split('id="run"')[1].split(">")[0]


def test_a_skipped_store_is_named(kept_main_store: SessionStore, compliance: Client) -> None:
    old_session("old")
    in_force("Chats")
    run = swept()
    SweepResult.objects.filter(run=run).update(state="skipped", reason="The store main did not respond.")
    assert "main skipped" in text(compliance.get(reverse("sweeps:list")))
    assert "The store main did not respond." in text(compliance.get(reverse("sweeps:run", args=[run.number])))


def test_a_run_that_stopped_asks_and_goes_on_after_resume(kept_main_store: SessionStore, compliance: Client) -> None:
    store = kept_main_store
    version = in_force("Chats")
    first = swept()
    SweepResult.objects.filter(run=first).update(forecast=0)
    SessionRecord.objects.bulk_create(
        SessionRecord(store=store, session_id=f"s-{number}", last_activity_at=now() - timedelta(days=40))
        for number in range(101)
    )
    run = swept()
    assert run.state == Run.State.STOPPED
    response = compliance.get(reverse("sweeps:run", args=[run.number]))
    assert "This run stopped and needs a decision." in text(response)
    assert "Chats would take 101 rows in main; 0 were expected." in text(response)
    assert "None" not in text(response)
    assert reverse("runs:resume", args=[run.number]) in html(response)
    assert reverse("runs:cancel", args=[run.number]) in html(response)
    assert compliance.post(reverse("runs:resume", args=[run.number])).status_code == 302
    again = swept()
    assert (again.number, again.state) == (run.number, Run.State.COMPLETE)
    assert SweepResult.objects.get(run=run, version=version).taken == 101


def test_an_unfinished_run_refreshes_itself(db: None, compliance: Client) -> None:
    run = Run.objects.create(kind="retention")
    for address in (reverse("sweeps:list"), reverse("sweeps:run", args=[run.number])):
        page, part = (html(compliance.get(address, headers=headers)) for headers in ({}, {"HX-Request": "true"}))
        assert part.strip() in page
        assert "<html" not in part
        assert f'hx-get="{address}"' in part
    Run.objects.update(state="cancelled", ended_at=now())
    for address in (reverse("sweeps:list"), reverse("sweeps:run", args=[run.number])):
        assert "hx-get" not in html(compliance.get(address, headers={"HX-Request": "true"}))


def test_runs_of_other_kinds_are_not_in_the_ledger(db: None, compliance: Client) -> None:
    other = Run.objects.create(kind="moving")
    assert compliance.get(reverse("sweeps:run", args=[other.number])).status_code == 404
    assert str(other) not in text(compliance.get(reverse("sweeps:list")))


def test_the_ledger_has_pages(db: None, compliance: Client) -> None:
    Run.objects.bulk_create(
        Run(kind="retention", state="complete", started_at=now(), ended_at=now()) for _ in range(60)
    )
    first = compliance.get(reverse("sweeps:list"))
    older = first.context["page"].older
    second = compliance.get(reverse("sweeps:list"), {"cursor": older})
    numbers = [row.run.number for response in (first, second) for row in response.context["rows"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(numbers) == 60
    assert compliance.get(reverse("sweeps:list"), {"cursor": "forged"}).status_code == 400


def test_a_backlog_that_grows_in_three_runs_in_a_row_is_a_warning(
    kept_main_store: SessionStore, compliance: Client
) -> None:
    in_force("Chats")
    swept()
    result = SweepResult.objects.get()
    for backlog in (5, 9):
        result_with(backlog, of=result)
    assert not metrics_of(recent_runs()).growing
    newest = result_with(12, of=result)
    assert "Chats in main: the number of overdue rows grew in 3 runs in a row (0, 5, 9, 12)." in text(
        compliance.get(reverse("sweeps:list"))
    )
    assert metrics_of(recent_runs()).backlog == 12
    result_with(12, of=newest)
    assert not metrics_of(recent_runs()).growing


def test_the_tables_have_sizes_and_a_sentence(kept_main_store: SessionStore, compliance: Client) -> None:
    run = Run.objects.create(kind="retention", state="complete", started_at=now(), ended_at=now())
    SweptTable.objects.create(
        run=run, name="agent_messages", rows=20_000, size_before=3 * 2**20, size_after=2**20, vacuumed_at=now()
    )
    page = text(compliance.get(reverse("sweeps:tables")))
    assert "agent_messages of the agents, store main Nothing to do" in page
    assert f"{run} 2.0 MB after 20,000 rows" in page.replace("\xa0", " ")
    assert "sessions_app_sessionrecord" in page


def test_the_pages_cost_the_same_for_many_runs_and_results(kept_main_store: SessionStore, compliance: Client) -> None:
    in_force("Chats")
    run = swept()
    result = SweepResult.objects.get()
    addresses = [reverse("sweeps:list"), reverse("sweeps:run", args=[run.number]), reverse("sweeps:tables")]

    def cost(address: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert compliance.get(address).status_code == 200
        return len(queries)

    before = [cost(address) for address in addresses]
    for number in range(20):
        other = result_with(number, of=result)
        SweptTable.objects.create(run=other.run, name="agent_messages", rows=20_000, size_before=1)
        SweepResult.objects.create(run=run, version=in_force(f"Policy {number}"), place="main", state="done")
    assert [cost(address) for address in addresses] == before


def test_whoever_may_not_see_policies_sees_no_run(operator: Client, auditor: Client, db: None) -> None:
    run = Run.objects.create(kind="retention")
    for client in (operator, auditor):
        for address in (reverse("sweeps:list"), reverse("sweeps:run", args=[run.number]), reverse("sweeps:tables")):
            assert client.get(address).status_code == 403


def test_the_overview_says_what_needs_a_person(db: None, compliance: Client, operator: Client) -> None:
    assert "0 overdue, next run" in text(compliance.get("/"))
    run = Run.objects.create(kind="retention", state="stopped")
    assert f"Retention run {run} stopped" in text(compliance.get("/"))
    assert f"Retention run {run}" not in text(operator.get("/"))


def test_the_command_prints_the_figures_for_scripts(kept_main_store: SessionStore) -> None:
    old_session("old")
    in_force("Chats")
    out = StringIO()
    call_command("run_retention", "--json", stdout=out)
    figures = json.loads(out.getvalue())["metrics"]
    assert (figures["backlog_rows"], figures["seconds_behind"], figures["growing"]) == (0, 0, [])
    ended_at = Run.objects.get().ended_at
    assert ended_at
    assert figures["last_success"] == ended_at.isoformat()
    assert figures["next_run"] > figures["last_success"]
