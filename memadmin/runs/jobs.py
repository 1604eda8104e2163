"""Background jobs of the engine. A job is only a wake-up: the run's row has the work and its worker."""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from procrastinate.contrib.django import app
from procrastinate.exceptions import AlreadyEnqueued

from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.web.periodic import is_stale

LOW_PRIORITY = -10
"""Periodic jobs come first: a run takes a worker for ten seconds."""


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
    """Queues every run that is due and has no worker: after a crash, a lost job or a wait."""
    if not is_stale(timestamp):
        for run_id in Run.objects.workable().values_list("pk", flat=True):
            defer_work(run_id)


def defer_work(run_id: int) -> None:
    """Queues the work on a run unless it is queued already. In the caller's transaction."""
    # The savepoint keeps that transaction usable when the job is refused.
    with suppress(AlreadyEnqueued), transaction.atomic():
        work_on_run.configure(queueing_lock=f"run-{run_id}").defer(run_id=run_id)
