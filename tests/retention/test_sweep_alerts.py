"""E-mails about sweeps: what compliance is told, once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection
from django.test import Client
from django.utils.timezone import now

from memadmin.deploy.checks import operation
from memadmin.retention.models import SweepAlert, SweepResult
from memadmin.retention.sweep import silence as silences
from memadmin.retention.sweep.alerts import send_alerts
from memadmin.retention.sweep.silence import silence
from memadmin.runs.engine import take
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from tests.mails import words_of_mail
from tests.people import person
from tests.retention.policies import in_force

TO = ["officers@tea.example"]


@pytest.fixture
def officer(db: None, settings: Any) -> User:
    settings.MAIL_SERVER, settings.NOTICES_TO = {"EMAIL_HOST": "mail"}, TO
    return person("compliance")


def stopped() -> Run:
    run = Run.objects.create(kind="retention")
    stop(run)
    return run


def stop(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    lease = take(run.pk)
    assert lease is not None
    lease.stop("Chats would take 1,000 rows; 10 were expected.")
    run.refresh_from_db()


def finished(state: str = "complete", *, days: int = 0) -> Run:
    ended_at = now() - timedelta(days=days)
    return Run.objects.create(
        kind="retention", parameters={"policy": ""}, state=state, started_at=ended_at, ended_at=ended_at
    )


def test_a_run_that_stopped_is_told_once_and_again_when_it_stops_again(officer: User) -> None:
    run = stopped()
    assert [send_alerts(), send_alerts()] == [1, 0]
    [message] = mail.outbox
    assert message.to == TO
    assert message.subject == f"memadmin: The retention run {run} stopped and needs a decision"
    assert "would take 1,000 rows" in message.body
    assert f"/retention/runs/{run.number}/" in message.body
    resume_run(run, by=officer)
    assert send_alerts() == 0
    stop(run)
    assert [send_alerts(), send_alerts()] == [1, 0]


def test_a_failed_and_an_incomplete_run_are_told_and_a_complete_one_is_not(officer: User) -> None:
    for state in ("failed", "exceptions", "complete", "cancelled"):
        finished(state)
    Run.objects.create(kind="moving", state="failed", ended_at=now())
    assert [send_alerts(), send_alerts()] == [2, 0]
    assert sorted(SweepAlert.objects.values_list("run__state", flat=True)) == ["exceptions", "failed"]


def test_old_news_is_none(officer: User) -> None:
    finished("exceptions", days=8)
    finished("exceptions", days=6)
    assert send_alerts() == 1


def left(version: Any, backlog: int, place: str = "main") -> None:
    SweepResult.objects.create(run=finished(), version=version, place=place, state="done", backlog=backlog)


def test_a_backlog_that_grows_is_told_once_until_it_has_shrunk(officer: User) -> None:
    version = in_force("Chats")
    for backlog in (1, 2, 3):
        left(version, backlog)
    assert send_alerts() == 0
    left(version, 4)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert "Chats in main: the number of overdue rows grew in 3 runs in a row (1, 2, 3, 4)." in (
        words_of_mail(mail.outbox[0])
    )
    left(version, 5)
    assert send_alerts() == 0
    for backlog in (2, 3, 4, 5):
        left(version, backlog)
    assert send_alerts() == 1


def test_backlogs_of_different_places_are_different(officer: User) -> None:
    version = in_force("Chats")
    for backlog in (1, 2, 3, 4):
        left(version, backlog, "one")
        left(version, 5 - backlog, "two")
    assert send_alerts() == 1
    assert "in one" in mail.outbox[0].body


def test_what_a_mail_server_refuses_is_sent_later(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped()

    def refuse(message: mail.EmailMessage, *args: Any, **named: Any) -> int:
        raise ConnectionRefusedError

    with monkeypatch.context() as refusing:
        refusing.setattr(mail.EmailMessage, "send", refuse)
        assert send_alerts() == 0
    assert send_alerts() == 1


def test_without_a_mail_server_nothing_is_noted_as_told(officer: User, settings: Any) -> None:
    stopped()
    settings.MAIL_SERVER = {}
    assert send_alerts() == 0
    assert not SweepAlert.objects.exists()


def in_force_since(days: int, **columns: Any) -> None:
    version = in_force(**columns)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(
            "UPDATE retention_policyversion SET starts_at = starts_at - make_interval(days => %s) WHERE id = %s",
            [days, version.pk],
        )
        cursor.execute("SET LOCAL session_replication_role = DEFAULT")


class TestSilence:
    """No run has succeeded for two nights, whatever the reason."""

    def test_a_paused_run_that_was_forgotten_is_told_once_a_week(self, officer: User) -> None:
        in_force_since(30)
        finished(days=3)
        run = Run.objects.create(kind="retention", parameters={"policy": ""}, state="paused")
        assert [send_alerts(), send_alerts()] == [1, 0]
        words = words_of_mail(mail.outbox[0])
        assert f"{run} is paused: resume or cancel it." in words
        assert f"/retention/runs/{run.number}/" in words
        SweepAlert.objects.update(at=now() - timedelta(days=8))
        assert send_alerts() == 1

    def test_it_is_told_anew_after_a_success(self, officer: User) -> None:
        in_force_since(30)
        Run.objects.create(kind="retention", parameters={"policy": ""}, state="paused")
        assert send_alerts() == 1
        SweepAlert.objects.update(at=now() - timedelta(days=4))
        finished(days=3)
        assert [send_alerts(), send_alerts()] == [1, 0]

    def test_a_run_that_waits_says_for_what(self, db: None) -> None:
        in_force_since(3)
        reason = "The replica two is more than 30 seconds behind. The run goes on when it is not."
        run = Run.objects.create(kind="retention", parameters={"policy": ""}, state="waiting", reason=reason)
        found = silence()
        assert found is not None
        assert found.why == f"{run} waits. {reason}"

    def test_without_a_worker_none_begins_or_goes_on(self, db: None) -> None:
        in_force_since(30)
        finished(days=3)
        found = silence()
        assert found is not None
        assert found.why == "None has begun since: check that a worker is running."
        Run.objects.create(kind="retention", parameters={"policy": ""}, state="running")
        found = silence()
        assert found is not None
        assert "No worker works on" in found.why

    def test_runs_that_fail_night_after_night(self, db: None) -> None:
        in_force_since(30)
        finished(days=3)
        for days in (2, 1):
            finished("failed", days=days)
        found = silence()
        assert found is not None
        assert found.why.endswith("ended as failed.")

    @pytest.mark.parametrize("policy", [None, {"days": None, "action": "keep"}, {}])
    def test_what_takes_nothing_or_is_new_needs_no_run(self, db: None, policy: dict[str, Any] | None) -> None:
        if policy is not None:
            in_force(**policy)
        Run.objects.create(kind="retention", parameters={"policy": ""}, state="paused")
        assert silence() is None

    def test_a_success_of_one_policy_alone_is_none(self, db: None) -> None:
        in_force_since(30)
        Run.objects.create(kind="retention", parameters={"policy": "Chats"}, state="complete", ended_at=now())
        assert silence() is not None
        finished()
        assert silence() is None

    def test_the_overview_and_the_ledger_say_so(self, compliance: Client) -> None:
        in_force_since(30)
        finished(days=3)
        assert "No retention run has succeeded since" in compliance.get("/").content.decode()
        assert "No retention run has succeeded since" in compliance.get("/retention/runs/").content.decode()
        finished()
        assert "No retention run has succeeded since" not in compliance.get("/").content.decode()
        assert "No retention run has succeeded since" not in compliance.get("/retention/runs/").content.decode()


def test_check_deploy_tells_of_runs_that_do_not_take_place_or_fall_behind(
    db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = in_force("Chats")
    for backlog in (1, 2, 3):
        left(version, backlog)
    assert not list(operation.retention())
    left(version, 4)
    assert ["grew in 3 runs" in finding.hint for finding in operation.retention()] == [True]
    Run.objects.all().delete()
    assert not list(operation.retention())
    in_three_days = now() + timedelta(days=3)
    monkeypatch.setattr(silences, "now", lambda: in_three_days)
    assert ["No retention run has succeeded since" in finding.hint for finding in operation.retention()] == [True]
