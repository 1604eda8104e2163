"""Retention runs in a real browser: a stopped run is resumed by keyboard, and the pages in all sizes and themes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.retention.models import PolicyVersion, SweepResult, SweptTable
from memadmin.runs.models import Run
from tests.browser.conftest import in_all_views
from tests.retention.policies import in_force

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]

ASKS = "Closed tickets would take 1,220 rows in main; 20 were expected. Resume the run if that is right, or cancel it."


def ended(version: PolicyVersion, *, days: int, **columns: object) -> SweepResult:
    at = now() - timedelta(days=days)
    run = Run.objects.create(kind="retention", state="complete", started_at=at, ended_at=at, done=588, worked_ms=72_000)
    return SweepResult.objects.create(
        **{"run": run, "version": version, "place": "main", "state": "done", "taken": 588, "items": 4_211, **columns}
    )


def stopped(version: PolicyVersion) -> Run:
    run = Run.objects.create(kind="retention", started_at=now(), state="stopped", total=1_220, done=300, reason=ASKS)
    SweepResult.objects.create(run=run, version=version, place="main", state="running", previewed=1_220, taken=300)
    return run


def test_a_run_that_stopped_is_resumed_by_keyboard(page: Page, sign_in: SignIn) -> None:
    run = stopped(in_force("Closed tickets"))
    sign_in("compliance")
    page.goto(reverse("sweeps:list"))
    page.get_by_role("row", name=str(run)).get_by_role("link").press("Enter")
    expect(page.get_by_role("alert").first).to_contain_text("This run stopped and needs a decision.")
    page.get_by_role("button", name=f"Resume {run}").press("Enter")
    expect(page.get_by_text("waiting", exact=True).first).to_be_visible()
    run.refresh_from_db()
    assert run.state == Run.State.WAITING


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    sign_in("compliance")
    look(reverse("sweeps:list"))
    look(reverse("sweeps:tables"))
    version = in_force("Closed tickets")
    for days, backlog in ((4, 3), (3, 8), (2, 13)):
        ended(version, days=days, backlog=backlog, behind_since=now() - timedelta(days=9))
    last = ended(version, days=1, backlog=21, left={"busy": 3, "kept_with_turn": 12}, tables={"agent_messages": 4_211})
    reason = "The store claims-mongo did not respond. The next run includes it."
    SweepResult.objects.create(run=last.run, version=version, place="claims-mongo", state="skipped", reason=reason)
    SweptTable.objects.create(
        run=last.run, name="audit_detail", rows=42_110, size_before=2**26, size_after=2**25, vacuumed_at=now()
    )
    SweptTable.objects.create(run=last.run, name="agent_messages", rows=42_110, size_before=2**26)
    Run.objects.filter(pk=last.run_id).update(
        state="exceptions", exceptions=[["away", "claims-mongo", 1], ["not_vacuumed", "agent_messages", 1]]
    )
    run = stopped(version)
    look(reverse("sweeps:list"))
    look(reverse("sweeps:run", args=[last.run_id]))
    look(reverse("sweeps:run", args=[run.number]))
    look(reverse("sweeps:tables"))
