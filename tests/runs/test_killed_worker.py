"""Workers that are killed again and again: their jobs are done all the same, and no work is done twice."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from contextlib import suppress

import pytest
from django.conf import settings
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import AlreadyEnqueued

from memadmin.audit import jobs as audit_jobs
from memadmin.runs.jobs import defer_work
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from tests.agents import run_sql
from tests.forks import PROCESSES
from tests.runs import killed_worker, moving

ROWS = 300
KILLS = 30
LAST_MOMENT = 250
"""A worker with something of every kind to do comes to more moments than this."""


@pytest.mark.release
@pytest.mark.django_db(transaction=True)
def test_kills_leave_every_job_done_and_none_done_twice() -> None:
    """At each call tests/runs/test_processes.py kills workers at chosen moments of one kind of run."""
    moment = random.Random(14)
    with moving.tables(ROWS):
        run = request_run("test_moving", total=ROWS)
        exit_codes = Counter[int | None]()
        while exit_codes[-signal.SIGKILL] < KILLS and exit_codes[0] < KILLS:
            queue_every_kind(run)
            exit_codes[work_until(moment.randrange(1, LAST_MOMENT))] += 1
        assert exit_codes[-signal.SIGKILL] == KILLS
        queue_every_kind(run)
        # The first recovers what the last killed one had begun. At the end of each a period may have begun.
        for _ in range(10):
            assert work_until(killed_worker.ITS_END) == 0
            if not (left := list(ProcrastinateJob.objects.values_list("task_name", "status"))):
                break
        assert left == []
        run.refresh_from_db()
        assert (run.state, run.done, moving.count_done()) == (Run.State.COMPLETE, ROWS, (ROWS, ROWS))


def queue_every_kind(run: Run) -> None:
    """As the deferrer of a restarted worker does, for all periods at once; and what people request."""
    for periodic in app.periodic_registry.periodic_tasks.values():
        with suppress(AlreadyEnqueued):
            periodic.task.defer(timestamp=int(time.time()))
    with suppress(AlreadyEnqueued):
        audit_jobs.verify_log.defer()
    defer_work(run.pk)


def work_until(moment: int) -> int | None:
    """Exit code of a worker that is killed at this moment; afterwards its heartbeat and its lease are old."""
    args = (connection.settings_dict["NAME"], settings.DATA_DIR, moment)
    worker = PROCESSES.Process(target=killed_worker.main, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    return worker.exitcode
