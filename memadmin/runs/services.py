"""Verbs about runs: request, pause, resume, cancel, limit the speed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from memadmin import audit
from memadmin.runs import audit_events, engine
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run

State = Run.State

PATIENCE = "3s"
"""Time for which a verb waits for the current chunk."""


class InvalidRunState(Exception):
    """The run is not in a state for this. Nothing was changed."""

    def __init__(self, run: Run, verb: str) -> None:
        super().__init__(f"{run} is {run.get_state_display()} and cannot be {verb}. Nothing was changed.")
        self.run = run


class ChunkUnderWay(Exception):
    """A chunk holds the run for longer than usual. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__(
            "The run is writing a chunk and did not respond within 3 seconds. Nothing was changed; try again."
        )


@transaction.atomic
def request_run(kind: str, *, by: User | None = None, **columns: Any) -> Run:
    """A run that begins as soon as a worker is free. `columns` are those of `Run`, such as `parameters`.

    In the caller's transaction: a rollback leaves neither the run nor its job.
    """
    # A worker decides in the name of who requested it.
    audit.prove(by)
    run = Run.objects.create(kind=kind, requested_by=by, **columns)
    wake(run)
    return run


def wake(run: Run) -> None:
    """Queues a job for a run; does nothing if one is queued already.

    The job is only a wake-up: the periodic job `wake_runs` finds a run whose job was lost.
    """
    from memadmin.runs import jobs

    jobs.defer_work(run.pk)


def pause_run(run: Run, *, by: User, note: str = "") -> Run:
    """Stops the run after its current chunk. Raises InvalidRunState and ChunkUnderWay."""
    with locked(run) as run:
        if run.state not in (State.WAITING, State.RUNNING):
            raise InvalidRunState(run, "paused")
        audit.record(audit_events.RUN_PAUSED, by=by, target=run, details={"note": note} if note else None)
        run.note(f"Paused by {by.username}." + (f" {note}" if note else ""))
        change(run, state=State.PAUSED, lease_until=None, retry_at=None, reason=note[:400], reason_by=by)
    return run


def resume_run(run: Run, *, by: User) -> Run:
    """Lets a paused, stopped or failed run continue from its cursor, and a waiting one retry now.

    Raises InvalidRunState and ChunkUnderWay.
    """
    with locked(run) as run:
        is_resumable = run.state in (State.PAUSED, State.STOPPED, State.WAITING)
        if not is_resumable and not (run.state == State.FAILED and kind_named(run.kind).may_retry(run)):
            raise InvalidRunState(run, "resumed")
        if run.state == State.STOPPED and not kind_named(run.kind).before_resume(run, by):
            raise InvalidRunState(run, "resumed by you")
        audit.record(audit_events.RUN_RESUMED, by=by, target=run)
        run.note(f"Resumed by {by.username}.")
        change(run, state=State.WAITING, ended_at=None, attempts=0, retry_at=None, reason="", reason_by=None)
        wake(run)
    return run


def cancel_run(run: Run, *, by: User | None = None) -> Run:
    """Ends the run after its current chunk; completed work is kept. Raises InvalidRunState and ChunkUnderWay."""
    with locked(run) as run:
        if run.is_finished or not kind_named(run.kind).may_cancel(run):
            raise InvalidRunState(run, "cancelled")
        audit.record(audit_events.RUN_CANCELLED, by=by, target=run)
        run.note(f"Cancelled by {by.username if by else 'a command'}.")
        engine.end(run, State.CANCELLED)
    return run


def limit_speed(run: Run, *, by: User, rows_per_second: int | None) -> Run:
    """Limits an unfinished run after its current chunk; None removes the limit.

    Raises InvalidRunState and ChunkUnderWay.
    """
    with locked(run) as run:
        if run.is_finished:
            raise InvalidRunState(run, "limited")
        audit.record(audit_events.RUN_LIMITED, by=by, target=run, counters={"rows_per_second": rows_per_second or 0})
        limit = f"{rows_per_second:,} {kind_named(run.kind).unit} per second" if rows_per_second else "none"
        run.note(f"Speed limit set by {by.username}: {limit}.")
        change(run, rows_per_second=rows_per_second)
    return run


@contextmanager
def locked(run: Run) -> Iterator[Run]:
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('lock_timeout', %s, true)", [PATIENCE])
            yield Run.objects.select_for_update(no_key=True).get(pk=run.pk)
    except OperationalError as problem:
        if isinstance(problem.__cause__, LockNotAvailable):
            raise ChunkUnderWay from problem
        raise


def change(run: Run, **columns: Any) -> None:
    Run.objects.filter(pk=run.pk).update(**columns)
    run.refresh_from_db()
