"""Jobs of dead workers, and jobs that are stuck, overdue or failed: recovered one by one, and reported."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection
from django.test import Client
from procrastinate.contrib.django.models import ProcrastinateJob

from memadmin.deploy.checks import operation
from memadmin.web import job_queue

DEAD, ALIVE = "1 hour", "0 seconds"

ALL_WELL = {"ready": True, "problems": [], "degraded": []}


def make_worker(silent_for: str) -> int:
    return insert(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - %s::interval) RETURNING id", silent_for
    )


def make_job(
    status: str = "todo", *, since: str = "0 seconds", worker: int | None = None, lock: str | None = None
) -> int:
    """A job of a kind that waits once and runs once, if `lock` is given."""
    job = insert(
        "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock)"
        " VALUES ('default', 'nothing', %s, %s) RETURNING id",
        lock,
        lock,
    )
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = %s, worker_id = %s WHERE id = %s", [status, worker, job])
        cursor.execute("UPDATE procrastinate_events SET at = at - %s::interval WHERE job_id = %s", [since, job])
    return job


def insert(statement: str, *values: str | None) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        (number,) = cursor.fetchone()
    return int(number)


def states() -> dict[int, str]:
    return dict(ProcrastinateJob.objects.values_list("pk", "status"))


@pytest.mark.django_db(transaction=True)
def test_each_orphan_is_recovered_by_itself() -> None:
    dead, alive = make_worker(DEAD), make_worker(ALIVE)
    with_twin = [make_job("doing", worker=dead, lock=lock) for lock in ("first", "second")]
    twins = [make_job(lock=lock) for lock in ("first", "second")]
    alone, unknown = make_job("doing", worker=dead, lock="alone"), make_job("doing", lock="unknown")
    running = make_job("doing", worker=alive, lock="running")
    assert async_to_sync(job_queue.recover_orphans)() == 4
    assert states() == dict.fromkeys([*twins, alone, unknown], "todo") | {running: "doing"}
    assert not set(with_twin) & states().keys()


@pytest.mark.django_db
def test_failed_jobs_are_kept_for_three_days() -> None:
    old, recent, waiting = make_job("failed", since="4 days"), make_job("failed", since="2 days"), make_job()
    async_to_sync(job_queue.forget_old_jobs)()
    assert states() == {recent: "failed", waiting: "todo"}, old


PROBLEMS: dict[str, dict[str, Any]] = {
    "jobs-stuck": {"status": "doing", "since": "10 minutes"},
    "jobs-overdue": {"status": "todo", "since": "20 minutes"},
    "jobs-failed": {"status": "failed", "since": "2 hours"},
}


@pytest.mark.django_db
@pytest.mark.parametrize("check", PROBLEMS)
def test_jobs_that_are_not_done_are_reported_everywhere(check: str, client: Client, compliance: Client) -> None:
    worker = make_worker(ALIVE)
    make_job("doing", since="10 minutes", worker=worker)  # a long one, whose worker is alive
    make_job("todo", since="1 minute")
    make_job("failed", since="2 days")
    assert list(operation.worker()) == []
    assert client.get("/readyz").json() == ALL_WELL

    make_job(**PROBLEMS[check])
    (found,) = operation.worker()
    assert (found.level, found.check) == ("error", check)
    assert found.hint in compliance.get("/runs/").content.decode()
    # Strangers learn neither kinds nor numbers; the web server keeps its place behind the load balancer.
    response = client.get("/readyz")
    degraded = ["Background jobs are stuck, overdue or failed. Run `memadmin check_deploy`."]
    assert (response.status_code, response.json()) == (200, ALL_WELL | {"degraded": degraded})
