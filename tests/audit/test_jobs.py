"""What the worker does for the log from time to time."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.audit import jobs
from memadmin.audit.models import AuditVerdict
from memadmin.audit.transparency import anchors, verification


@pytest.mark.parametrize(("name", "minutes"), [("anchor_checkpoints", 1), ("verify_log_daily", 5)])
def test_jobs_come_in_time(name: str, minutes: int) -> None:
    times = app.periodic_registry.periodic_tasks[f"memadmin.audit.jobs.{name}", ""].croniter
    first = times.get_next(float)
    assert times.get_next(float) - first == minutes * 60


@pytest.mark.django_db
@pytest.mark.parametrize(("age", "is_due"), [(None, True), (timedelta(hours=23), False), (timedelta(hours=25), True)])
def test_log_is_verified_once_a_day(age: timedelta | None, is_due: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(verification, "verify", lambda: done.append("verified"))
    if age:
        AuditVerdict.objects.create(verdict="ok", size=0, at=now() - age)
    jobs.verify_log_daily(timestamp=int(time.time()))
    assert bool(done) == is_due


@pytest.mark.django_db
def test_the_age_of_a_verdict_that_is_old_is_a_setting(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.LOG_VERIFIED_EVERY = timedelta(hours=2)
    done: list[str] = []
    monkeypatch.setattr(verification, "verify", lambda: done.append("verified"))
    AuditVerdict.objects.create(verdict="ok", size=0, at=now() - timedelta(hours=1))
    jobs.verify_old_log()
    assert not done
    settings.LOG_VERIFIED_EVERY = timedelta(minutes=30)
    jobs.verify_old_log()
    assert done == ["verified"]


def test_ticks_that_a_frozen_worker_missed_do_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "publish", lambda: pytest.fail("too late"))
    jobs.anchor_checkpoints(timestamp=int(time.time()) - 90)
