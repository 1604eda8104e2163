"""The page System: parts, scheduled jobs, versions, and the findings of the checks with their age."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.deploy import checks
from memadmin.deploy.checks.finding import CheckFinding
from memadmin.deploy.system import components, last_check
from memadmin.deploy.system.components import SystemPart, file_size
from tests.agents import run_sql
from tests.builders import make_store
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

SYSTEM, CHECK = reverse("system:system"), reverse("system:check")
IN_PART = {"HX-Request": "true"}


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> list[CheckFinding]:
    """Two findings instead of all checks."""
    found = [
        CheckFinding("error", "worker", "No worker is running. Start `worker`."),
        CheckFinding("warning", "backups", "There is <no> archive."),
    ]

    def one() -> Iterator[CheckFinding]:
        yield from found

    monkeypatch.setattr(checks, "OF_DATABASE", (one,))
    monkeypatch.setattr(checks, "OF_SETTINGS", ())
    return found


def part(key: str) -> SystemPart:
    return next(part for part in components.parts() if part.key == key)


def words(part: SystemPart) -> dict[str, str]:
    return {fact.name: fact.words for fact in part.facts}


def test_errors_wait_for_administrators_on_their_home_page(administrator: Client, quick: list[CheckFinding]) -> None:
    home, title = reverse("sessions:overview"), "1 error in the checks of the deployment"
    assert title not in administrator.get(home).text
    administrator.post(CHECK)
    page = administrator.get(home).text
    assert title in page
    assert "No worker is running" in page
    assert "checked just now" in page
    assert title not in signed_in(person("compliance")).get(home).text
    # Warnings are risks that may be accepted.
    quick[:] = [finding for finding in quick if finding.level == "warning"]
    administrator.post(CHECK)
    assert title not in administrator.get(home).text


def test_the_page_asks_for_the_checks_and_shows_them_with_their_age(
    administrator: Client, quick: list[CheckFinding]
) -> None:
    page = administrator.get(SYSTEM).text
    assert "Not checked yet" in page
    assert f'hx-post="{CHECK}"' in page
    part = administrator.post(CHECK, headers=IN_PART).text
    assert "<p>No worker is running</p>" in part
    assert "<p>Start <code>worker</code>.</p>" in part
    assert "There is &lt;no&gt; archive" in part
    assert "1 error" in part
    assert "1 warning" in part
    assert "hx-post" not in part
    assert "<main" not in part
    # What was found is kept for everybody, and checked again after five minutes.
    assert "1 error" in administrator.get(SYSTEM).text
    assert f'hx-post="{CHECK}"' not in administrator.get(SYSTEM).text
    kept = cache.get(last_check.RESULT)
    cache.set(last_check.RESULT, kept | {"at": (now() - timedelta(minutes=6)).isoformat()})
    page = administrator.get(SYSTEM).text
    assert "1 error" in page
    assert f'hx-post="{CHECK}"' in page


def test_checking_without_a_script(administrator: Client, quick: list[CheckFinding]) -> None:
    page = administrator.post(CHECK, follow=True)
    assert page.redirect_chain == [(SYSTEM, 302)]
    assert "1 error" in page.text


def test_only_one_request_checks_at_a_time(administrator: Client, quick: list[CheckFinding]) -> None:
    cache.add(last_check.RUNNING, True, timeout=60)
    part = administrator.post(CHECK, headers=IN_PART).text
    assert last_check.last_result() is None
    assert 'hx-trigger="every 2s"' in part
    cache.delete(last_check.RUNNING)
    assert last_check.run_checks()
    assert not last_check.is_running()


def test_a_failing_run_lets_the_next_one_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(checks, "findings", fail)
    with pytest.raises(ZeroDivisionError):
        last_check.run_checks()
    assert not last_check.is_running()


def test_checks_without_time_left_are_named(quick: list[CheckFinding]) -> None:
    (found,) = checks.findings(until=time.monotonic())
    assert (found.level, found.check) == ("warning", "not-checked")
    assert "these checks: one." in found.hint
    assert checks.findings(until=time.monotonic() + 3600) == quick


@pytest.mark.django_db(transaction=True)
def test_a_query_that_takes_too_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow() -> Iterator[CheckFinding]:
        run_sql("SELECT pg_sleep(60)")
        yield CheckFinding("error", "slow", "It ended.")

    def quick() -> Iterator[CheckFinding]:
        yield CheckFinding("warning", "quick", "It was asked afterwards.")

    monkeypatch.setattr(checks, "OF_DATABASE", (slow, quick))
    monkeypatch.setattr(checks, "OF_SETTINGS", ())
    monkeypatch.setattr(last_check, "STATEMENT_SECONDS", 1)
    last_check.run_checks()
    result = last_check.last_result()
    assert result
    assert [(found.level, found.check) for found in result.findings] == [("error", "slow"), ("warning", "quick")]
    assert "statement timeout" in result.findings[0].hint
    run_sql("SELECT pg_sleep(1.1)")  # no longer limited


def test_the_real_checks_run(administrator: Client) -> None:
    administrator.post(CHECK)
    result = last_check.last_result()
    assert result
    assert {"https", "worker"} <= {found.check for found in result.findings}


def test_parts(settings: Any, tmp_path: Any) -> None:
    settings.DATA_DIR = tmp_path / "not" / "there" / "yet"
    assert [part.key for part in components.parts()] == ["web", "worker", "sequencer", "stores", "anchors", "disk"]
    assert part("web").state == "ok"
    assert "GB free" in words(part("disk"))["Data"]
    assert (file_size(38_400_000), file_size(1_200_000_000)) == ("38 MB", "1.2 GB")
    assert "unknown" not in {part.state for part in components.parts()}


def test_workers_by_their_heartbeat() -> None:
    assert (part("worker").state, words(part("worker"))["Processes"]) == ("down", "0 running")
    run_sql("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now()), (now() - interval '4 minutes')")
    assert (part("worker").state, words(part("worker"))["Processes"]) == ("degraded", "1 running, 1 silent")
    run_sql("DELETE FROM procrastinate_workers WHERE last_heartbeat < now()")
    assert (part("worker").state, words(part("worker"))["Processes"]) == ("ok", "1 running")


def test_stores_by_their_last_check() -> None:
    store = make_store()
    assert words(part("stores"))[store.name] == "not checked yet"
    store.checked_at, store.last_check = (
        now(),
        {"problems": [{"code": "away", "sentence": "It does not answer.", "is_fatal": True}]},
    )
    store.save()
    assert (part("stores").state, words(part("stores"))[store.name]) == ("down", "unreachable")


@pytest.mark.parametrize("problem", [DatabaseError("gone"), OSError("no disk")])
def test_a_part_that_fails_hides_no_other(
    administrator: Client, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail() -> SystemPart:
        raise problem

    monkeypatch.setattr(components, "PARTS", (("disk", "Disk", fail), *components.PARTS[:1]))
    assert [part.state for part in components.parts()] == ["unknown", "ok"]
    assert str(problem) in administrator.get(SYSTEM).text


def test_scheduled_jobs_are_those_of_the_worker() -> None:
    run_sql(
        "INSERT INTO procrastinate_periodic_defers (task_name, defer_timestamp)"
        " VALUES ('memadmin.audit.jobs.verify_log_daily', 1764144000)"
    )
    jobs = {job.name: job for job in components.scheduled_jobs()}
    assert len(jobs) == len(app.periodic_registry.periodic_tasks)
    verify = jobs["Verify log daily"]
    assert (verify.schedule, verify.failed) == ("each 5 min", 0)
    assert verify.last_at
    assert verify.last_at.timestamp() == 1764144000
    assert verify.next_at > now()
    assert jobs["Forget old logins"].schedule == "daily at 03:23 UTC"
    assert all(job.about for job in jobs.values())


def test_versions() -> None:
    shown = {fact.name: fact.words for fact in components.versions()}
    assert shown["Migrations"] == "all applied"
    assert all(shown[name][0].isdigit() for name in ("memadmin", "PostgreSQL", "pgvector", "Python", "Django"))


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * * */5", "each 5 s"),
        ("* * * * *", "each minute"),
        ("*/10 * * * *", "each 10 min"),
        ("7 * * * *", "hourly at :07"),
        ("23 3 * * *", "daily at 03:23 UTC"),
        ("0 0 1 * *", "0 0 1 * *"),
    ],
)
def test_schedules_in_words(cron: str, expected: str) -> None:
    assert components.schedule_in_words(cron) == expected


def test_jobs_and_versions_that_cannot_be_read_hide_no_part(
    administrator: Client, quick: list[CheckFinding], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise DatabaseError("permission denied")

    monkeypatch.setattr(components, "scheduled_jobs", fails)
    monkeypatch.setattr(components, "versions", fails)
    page = administrator.get(SYSTEM)
    assert page.status_code == 200
    assert page.text.count("Unknown. The log of the web server says why.") == 2
    assert all(part.title in page.text for part in components.parts())
