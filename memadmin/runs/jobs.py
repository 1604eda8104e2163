"""Background jobs of the engine. A job is only a wake-up: the run's row has the work and its worker."""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from django.db.models import QuerySet
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import AlreadyEnqueued

from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.web.periodic import is_stale

LOW_PRIORITY = -10
"""Periodic jobs come first: a run takes a worker for ten seconds."""

MOST_QUEUED = 50
"""Jobs of runs that `wake_runs` lets wait: a batch has thousands of runs, and a person's request is queued behind."""


@app.task(priority=LOW_PRIORITY)
def work_on_run(run_id: int) -> None:
    """Works on a run for one slice. The lease keeps others away, so the job has no lock that could outlive a worker."""
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        return
    run = engine.carry_on(run, seconds=engine.SLICE_SECONDS)
    if run.state == Run.State.RUNNING and run.lease_until is None and not engine.stopping.is_set():
        defer_work(run_id)


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="wake_runs")
def wake_runs(timestamp: int) -> None:
    """Queues runs that are due and have no worker: after a crash, a lost job or a wait."""
    if is_stale(timestamp):
        return
    queued = jobs_that_wait()
    # One at least: MOST_QUEUED long runs that queue themselves after each slice must not keep the others out.
    count = max(1, MOST_QUEUED - queued.count())
    for run_id in Run.objects.workable().without_job(queued).oldest_due_first().values_list("pk", flat=True)[:count]:
        defer_work(run_id)


def jobs_that_wait() -> QuerySet[ProcrastinateJob]:
    """Jobs of runs that no worker has begun.

    A job that has begun is not counted: its worker may be dead or hang, and the run's lease tells whether it responds.
    """
    return ProcrastinateJob.objects.filter(task_name=work_on_run.name, status="todo")


def defer_work(run_id: int) -> None:
    """Queues the work on a run unless it is queued already. In the caller's transaction."""
    # The savepoint keeps that transaction usable when the job is refused.
    with suppress(AlreadyEnqueued), transaction.atomic():
        work_on_run.configure(queueing_lock=f"run-{run_id}").defer(run_id=run_id)
