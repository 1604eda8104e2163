"""The pages of runs: what they show, to whom, and their verbs."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.runs import services
from memadmin.runs.engine import Wait, carry_on
from memadmin.runs.models import Run
from memadmin.runs.view_models import view_of
from tests.people import person
from tests.runs.conftest import ROWS
from tests.runs.test_engine import At, failing

State = Run.State

pytestmark = pytest.mark.django_db


def text(response: object) -> str:
    return response.content.decode()  # type: ignore[attr-defined,no-any-return]


def without_tokens(html: str) -> str:
    """Django writes the CSRF token in another way each time."""
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", html)


def test_nothing_has_run_yet(compliance: Client) -> None:
    page = text(compliance.get("/runs/"))
    assert "No run is in progress" in page
    assert "No run has finished yet" in page


def test_an_unfinished_run_says_how_far_it_is(run: Run, compliance: Client) -> None:
    carry_on(run, seconds=0)
    page = text(compliance.get("/runs/"))
    assert f"R-{run.number}" in page
    assert "10 of about 45 rows" in " ".join(page.split())
    assert "22 %" in page


def test_the_refreshed_part_is_a_part_of_the_page(run: Run, compliance: Client) -> None:
    for address in ("/runs/", run.get_absolute_url()):
        page = without_tokens(text(compliance.get(address)))
        part = without_tokens(text(compliance.get(address, headers={"HX-Request": "true"})))
        assert part.strip() in page
        assert "<html" not in part


def test_a_finished_run_is_listed_with_its_outcome(run: Run, compliance: Client) -> None:
    carry_on(run)
    page = text(compliance.get("/runs/"))
    assert "No run is in progress" in page
    assert "45 rows" in page
    assert "hx-get" not in text(compliance.get(run.get_absolute_url())).split('id="run"')[1]


@pytest.mark.parametrize(
    ("query", "is_listed"),
    [
        ("kind=test_moving", True),
        ("state=complete", True),
        ("state=failed", False),
        ("days=7", True),
        ("kind=test_moving&state=cancelled", False),
        ("kind=nonsense", False),
        ("cursor=nonsense", False),
    ],
)
def test_finished_runs_are_filtered(run: Run, compliance: Client, query: str, is_listed: bool) -> None:
    carry_on(run)
    response = compliance.get(f"/runs/?{query}")
    assert (run.get_absolute_url() in text(response)) is is_listed
    assert response.status_code == (400 if "nonsense" in query else 200)
    assert "No run has finished yet" not in text(response)


def test_it_says_why_it_stands_still(run: Run, at: At, compliance: Client) -> None:
    at("begin", failing(Wait("The store hotline is unreachable.")))
    carry_on(run)
    page = text(compliance.get(run.get_absolute_url()))
    assert "The store hotline is unreachable." in page
    assert "Retry now" in page


@pytest.mark.parametrize(
    ("columns", "minutes", "why"),
    [
        ({"state": State.PAUSED, "reason": "after <office> hours"}, {}, "“after <office> hours”"),
        ({}, {"requested_at": -5}, "No worker has started this run yet. Check that a worker is running."),
        ({}, {"requested_at": -5, "retry_at": -5}, "No worker has started this run yet."),
        # An approved erasure in its time to cancel.
        ({}, {"requested_at": -5, "retry_at": 5}, ""),
        ({"state": State.RUNNING}, {"lease_until": -5}, "The worker is not responding; another worker takes over."),
        ({"state": State.RUNNING}, {"lease_until": 5}, ""),
    ],
)
def test_reasons(run: Run, columns: dict[str, object], minutes: dict[str, int], why: str) -> None:
    times = {name: now() + timedelta(minutes=count) for name, count in minutes.items()}
    Run.objects.filter(pk=run.pk).update(**columns, **times)
    run.refresh_from_db()
    shown = view_of(run, person("compliance")).why
    assert why in shown
    assert bool(shown) is bool(why)


def test_speed_and_time_left(run: Run) -> None:
    viewer = person("compliance")
    assert view_of(run, viewer).rate is None
    services.change(run, state=State.RUNNING, done=15, worked_ms=30_000)
    shown = view_of(run, viewer)
    assert (shown.rate, shown.time_left, shown.percent) == (0.5, timedelta(minutes=1), 33)
    services.change(run, done=ROWS + 5)
    assert (view_of(run, viewer).percent, view_of(run, viewer).time_left) == (99, None)
    services.change(run, total=None)
    assert view_of(run, viewer).percent is None


def test_pause_resume_and_cancel_by_button(run: Run, compliance: Client) -> None:
    address = run.get_absolute_url()
    for verb, state in (("pause", State.PAUSED), ("resume", State.WAITING), ("cancel", State.CANCELLED)):
        response = compliance.post(f"{address}{verb}/")
        assert response.status_code == 302
        run.refresh_from_db()
        assert run.state == state
    refused = compliance.post(f"{address}pause/")
    assert refused.status_code == 409
    assert "is cancelled and cannot be paused. Nothing was changed." in text(refused)


def test_the_speed_is_limited_and_the_limit_removed(run: Run, compliance: Client) -> None:
    address = f"{run.get_absolute_url()}speed/"
    for typed, limit, line in (("20", 20, ": 20 rows per second."), ("", None, ": none.")):
        assert compliance.post(address, {"rows_per_second": typed}).status_code == 302
        run.refresh_from_db()
        assert run.rows_per_second == limit
        assert line in text(compliance.get(run.get_absolute_url()))
    events = AuditEvent.objects.filter(type="run.limited").order_by("number")
    assert [event.counters for event in events] == [{"rows_per_second": 20}, {"rows_per_second": 0}]


@pytest.mark.parametrize("typed", ["0", "-1", "fast", "1000001", "1.5", "9" * 5_000])
def test_a_speed_that_is_none_changes_nothing(run: Run, compliance: Client, typed: str) -> None:
    refused = compliance.post(f"{run.get_absolute_url()}speed/", {"rows_per_second": typed})
    assert refused.status_code == 422
    assert "Enter a whole number from 1 to 1,000,000" in text(refused)
    assert f'value="{typed}"' in text(refused), "the input is lost"
    run.refresh_from_db()
    assert run.rows_per_second is None


def test_a_finished_run_has_no_speed(run: Run, compliance: Client) -> None:
    carry_on(run)
    assert 'id="speed"' not in text(compliance.get(run.get_absolute_url()))
    assert compliance.post(f"{run.get_absolute_url()}speed/", {"rows_per_second": "5"}).status_code == 409


def test_who_may_not(run: Run, operator: Client, auditor: Client, outsider: Client) -> None:
    for client in (operator, auditor, outsider):
        assert client.get("/runs/").status_code == 403
        assert client.get(run.get_absolute_url()).status_code == 403
        assert client.post(f"{run.get_absolute_url()}cancel/").status_code == 403
        assert client.post(f"{run.get_absolute_url()}speed/").status_code == 403
    run.refresh_from_db()
    assert run.state == State.WAITING


def test_no_such_run(compliance: Client) -> None:
    assert compliance.get("/runs/999999/").status_code == 404
    assert compliance.get("/runs/1/pause/").status_code == 405


def test_a_kind_of_another_version_is_shown_by_its_name(compliance: Client) -> None:
    run = services.request_run("of_a_later_version")
    assert "of_a_later_version" in text(compliance.get("/runs/"))
    assert compliance.get(run.get_absolute_url()).status_code == 200


def test_a_long_list_costs_the_same(run: Run, compliance: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert compliance.get("/runs/").status_code == 200
        return len(captured)

    make_runs(5)
    few = queries()
    make_runs(30)
    assert queries() == few


def make_runs(count: int) -> None:
    by = User.objects.first()
    Run.objects.bulk_create(
        Run(kind="test_moving", state=state, ended_at=ended, requested_by=by, reason_by=by)
        for state, ended in ((State.PAUSED, None), (State.COMPLETE, now()))
        for _ in range(count)
    )


def test_the_log_is_on_its_page(run: Run, compliance: Client, at: Callable[..., None]) -> None:
    carry_on(run, seconds=0)
    compliance.post(f"{run.get_absolute_url()}pause/", {"note": "after office hours"})
    page = text(compliance.get(run.get_absolute_url()))
    assert "Started." in page
    assert "after office hours" in page
