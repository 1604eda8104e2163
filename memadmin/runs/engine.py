"""Lease, fencing token and chunks: one process at a time works on a run, whatever happens to the others.

A process takes a run by incrementing its token and setting a lease. Every chunk is a transaction of its own that first
locks the run's row and compares token and state. So
- a process that was frozen, and replaced meanwhile, finds another token and ends without writing;
- pausing and cancelling are updates of the row, effective before the next chunk;
- a process that was killed leaves a lease that expires, and the run continues from the cursor of its last chunk.
All times are the database's: clocks of workers may differ.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import psycopg
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from memadmin import audit
from memadmin.process_metrics import RUN_CHUNK_SECONDS, RUN_FAULTS, RUN_ROWS
from memadmin.runs import audit_events
from memadmin.runs.kinds import RunKind, kind_named
from memadmin.runs.models import Run

State = Run.State

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=60)
"""Time after which other processes may take the run of one that does not respond."""

RENEW_AFTER_SECONDS = 5.0
"""`Lease.keep` writes at most this often."""

SLICE_SECONDS = 10.0
"""Time for which a worker works on one run before other runs get their turn."""

WATCH_SECONDS = 0.5
"""Interval at which a command checks a run that waits or that another process works on."""

MOST_ROWS = 1_000
FEWEST_ROWS = 10
CHUNK_SECONDS = 0.25
"""Bounds of a chunk: agents wait at most this long for the rows that it locks."""

MOST_ATTEMPTS = 5
FIRST_RETRY = timedelta(seconds=5)
"""A failed attempt is repeated after this time, then after twice as long, and so on."""

stopping = threading.Event()
"""Set by a process that was asked to end: runs are handed over after their current chunk."""


class Interrupted(Exception):
    """The run was paused or cancelled, its slice is over, or this process ends. It continues from its cursor."""


class LeaseLost(Exception):
    """Another process has taken the run."""


class Wait(Exception):
    """The work cannot continue now, for instance because a store is unreachable. The sentence has no personal data."""

    def __init__(self, sentence: str, *, retry_after: timedelta = timedelta(minutes=1)) -> None:
        super().__init__(sentence)
        self.retry_after = retry_after


class NeedsDecision(Exception):
    """A person must decide before the work continues. The sentence has no personal data."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Lets a long read between chunks end when this process must: cancels its queries, and raises Interrupted.

    What it read is lost then. Requests to other systems are not cancelled: call `stop_if_asked` between them.
    """
    connection.ensure_connection()
    ours, over = connection.connection, threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if stopping.is_set():
                # Again and again: the next query would take as long.
                with suppress(psycopg.Error):
                    ours.cancel_safe()

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    except Exception as problem:
        if stopping.is_set():
            raise Interrupted from problem
        raise
    finally:
        over.set()
        watching.join()
    stop_if_asked()


def stop_if_asked() -> None:
    """Raises Interrupted when this process must end."""
    if stopping.is_set():
        raise Interrupted


def take(run_id: int, *, seconds: float | None = None) -> Lease | None:
    """A lease on a run that is due and free, for a slice of `seconds` or until it ends; None if it is not free.

    A locked row is being worked on; it is skipped.
    """
    with transaction.atomic():
        run = Run.objects.workable().select_for_update(skip_locked=True, of=["self"]).filter(pk=run_id).first()
        if run is None:
            return None
        Run.objects.filter(pk=run_id).update(
            state=State.RUNNING,
            token=F("token") + 1,
            lease_until=Now() + LEASE,
            worker=f"{socket.gethostname()[:60]}:{os.getpid()}",
            reason="",
            reason_by=None,
            retry_at=None,
        )
        if run.started_at is None:
            Run.objects.filter(pk=run_id).update(started_at=Now())
            run.note("Started.")
        elif run.lease_until is not None:
            run.note(f"Taken over: the worker {run.worker} did not respond within {LEASE.seconds} seconds.")
        run.refresh_from_db()
    return Lease(run, seconds=seconds)


class Lease:
    """The right to work on one run. `run` is its row as of the last chunk or renewal."""

    def __init__(self, run: Run, *, seconds: float | None = None) -> None:
        self.run, self.token = run, run.token
        self._slice_ends_at = None if seconds is None else time.monotonic() + seconds
        self._rows, self._most_rows = 100, MOST_ROWS
        self._renewed_at = self._worked_until = self._paced_at = time.monotonic()
        self._paced_done = run.done

    @contextmanager
    def chunk(self) -> Iterator[Run]:
        """One transaction with exclusive work on this run. Changes of the yielded row are saved with it.

        Raises LeaseLost and Interrupted, with nothing written.
        """
        with transaction.atomic(), RUN_CHUNK_SECONDS.labels(self.run.kind).time():
            run = self._locked()
            done_before = run.done
            yield run
            run.attempts = 0
            self._save(run)
        self.run = run
        RUN_ROWS.labels(run.kind).inc(max(run.done - done_before, 0))

    def keep(self) -> None:
        """Renews the lease; for long reads between chunks, as often as one likes. Raises LeaseLost and Interrupted."""
        if time.monotonic() - self._renewed_at < RENEW_AFTER_SECONDS:
            return
        with transaction.atomic():
            run = self._locked()
            Run.objects.filter(pk=run.pk).update(lease_until=Now() + LEASE)
        self.run, self._renewed_at = run, time.monotonic()

    def extend(self, length: timedelta) -> None:
        """Keeps the run for so long: before one piece of work that takes longer than a lease, and cannot call `keep`.

        If the process is killed in it, the run stands still as long. Raises LeaseLost and Interrupted.
        """
        with transaction.atomic():
            run = self._locked()
            Run.objects.filter(pk=run.pk).update(lease_until=Now() + length)
        self.run, self._renewed_at = run, time.monotonic()

    def checkpoint(self) -> None:
        """A point at which the work can be handed over: between chunks, with everything up to the cursor done.

        Waits if the run is faster than its `rows_per_second`. Raises LeaseLost, and Interrupted when the slice is over
        or this process must end.
        """
        self._slow_down()
        if stopping.is_set() or (self._slice_ends_at is not None and time.monotonic() > self._slice_ends_at):
            raise Interrupted

    def in_chunks(self, step: Callable[[Run, int], int], *, most_rows: int = MOST_ROWS) -> None:
        """Calls `step` with the run and a number of rows, each time in a chunk, until it returns 0.

        `step` does at most so many rows, moves `run.cursor` and returns how many rows it did; they are added to
        `run.done`. The number adapts to CHUNK_SECONDS, and is at most `most_rows`.
        """
        self._rows, self._most_rows = min(self._rows, most_rows), most_rows
        while True:
            began = time.monotonic()
            with self.chunk() as run:
                # A second's worth at most: a slow run moves steadily, and its pause button works at once.
                count = step(run, min(self._rows, run.rows_per_second or self._rows))
                run.done += count
            if not count:
                return
            took = time.monotonic() - began
            self._adapt(took)
            self.checkpoint()

    def _adapt(self, took: float) -> None:
        if took > CHUNK_SECONDS:
            self._rows = max(FEWEST_ROWS, int(self._rows * CHUNK_SECONDS / took))
        elif took < CHUNK_SECONDS / 2:
            self._rows = min(self._most_rows, self._rows * 2)

    def _slow_down(self) -> None:
        """Waits as long as the rows since the last checkpoint may take; keeps the lease, and sees a changed limit."""
        while limit := self.run.rows_per_second:
            due = self._paced_at + (self.run.done - self._paced_done) / limit
            wait = min(due - time.monotonic(), RENEW_AFTER_SECONDS)
            if wait <= 0 or stopping.wait(wait):
                break
            self.keep()
        self._paced_at, self._paced_done = time.monotonic(), self.run.done

    def _locked(self) -> Run:
        self._limit_idle_time()
        run = Run.objects.select_for_update(no_key=True).filter(pk=self.run.pk).first()
        if run is None or run.token != self.token:
            raise LeaseLost
        if run.state != State.RUNNING:
            raise Interrupted
        return run

    def _limit_idle_time(self) -> None:
        """A process that freezes within a chunk loses its transaction, and its locks, when its lease is over."""
        milliseconds = int(LEASE.total_seconds() * 1000)
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('idle_in_transaction_session_timeout', %s, true)", [str(milliseconds)])

    def _save(self, run: Run) -> None:
        now = time.monotonic()
        Run.objects.filter(pk=run.pk).update(
            cursor=run.cursor,
            done=run.done,
            total=run.total,
            counters=run.counters,
            exceptions=run.exceptions,
            rows_per_second=run.rows_per_second,
            attempts=0,
            chunk_at=Now(),
            lease_until=Now() + LEASE,
            worked_ms=F("worked_ms") + int((now - self._worked_until) * 1000),
        )
        self._renewed_at = self._worked_until = now

    # --- end of a lease -------------------------------------------------------------------------------------------

    def release(self) -> None:
        """Leaves the run to the next process that takes it."""
        self._leave(lease_until=None)

    def wait(self, sentence: str, retry_after: timedelta) -> None:
        """Leaves the run until `retry_after` is over."""
        self._leave(
            sentence, state=State.WAITING, lease_until=None, reason=sentence[:400], retry_at=Now() + retry_after
        )

    def stop(self, sentence: str) -> None:
        """Nothing more happens until a person decides. Raises LeaseLost and Interrupted."""
        with transaction.atomic():
            audit.record(audit_events.RUN_STOPPED, target=self._locked())
            self._leave(sentence, state=State.STOPPED, lease_until=None, reason=sentence[:400])

    def fail_once(self, problem: Exception) -> None:
        """Repeats the work later, or fails after MOST_ATTEMPTS in a row. Only the type of the problem is kept."""
        sentence = f"An error of the type {type(problem).__name__}; the worker's log has the details."
        RUN_FAULTS.labels(self.run.kind).inc()
        attempts = self.run.attempts + 1
        if attempts < MOST_ATTEMPTS:
            self._leave(
                sentence,
                state=State.WAITING,
                lease_until=None,
                attempts=F("attempts") + 1,
                reason=sentence,
                retry_at=Now() + FIRST_RETRY * 2 ** (attempts - 1),
            )
        else:
            with suppress(Interrupted, LeaseLost):
                self.end(State.FAILED, reason=sentence)

    def end(self, state: State | None = None, *, reason: str = "") -> None:
        """Ends the run: complete, or completed with exceptions, unless another state is given. Raises LeaseLost."""
        with transaction.atomic():
            run = self._locked()
            end(run, state or outcome_of(run), reason=reason)
        self.run = run

    def _leave(self, note: str = "", **columns: object) -> None:
        """Only while the lease is ours; a state that a person set meanwhile stays."""
        ours = Run.objects.filter(pk=self.run.pk, token=self.token)
        with transaction.atomic():
            if ours.filter(state=State.RUNNING).update(**columns):
                if note:
                    self.run.note(note)
            else:
                ours.update(lease_until=None)


class UnstoredLease(Lease):
    """A lease on a run that is not stored: for previews and dry runs, which count and change nothing."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)

    @contextmanager
    def chunk(self) -> Iterator[Run]:
        yield self.run

    def keep(self) -> None:
        """Nothing to renew."""

    def extend(self, length: timedelta) -> None:
        """Nothing to renew."""

    def checkpoint(self) -> None:
        """No other run waits."""


def outcome_of(run: Run) -> State:
    """Complete, or completed with exceptions."""
    hints = kind_named(run.kind).hints
    has_exceptions = any(code not in hints for code, *_ in run.exceptions)
    return State.COMPLETE_WITH_EXCEPTIONS if has_exceptions else State.COMPLETE


def end(run: Run, state: State, *, reason: str = "") -> None:
    """Ends a run whose row the caller has locked, in the caller's transaction."""
    run.state, run.reason = state, reason[:400]
    kind_named(run.kind).before_end(run)
    if state == State.FAILED:
        audit.record(audit_events.RUN_FAILED, target=run, outcome="failed")
    Run.objects.filter(pk=run.pk).update(
        state=state,
        reason=run.reason,
        counters=run.counters,
        exceptions=run.exceptions,
        # The cursor may name sessions; only a failed run needs it to continue.
        cursor=run.cursor if state == State.FAILED else {},
        ended_at=Now(),
        lease_until=None,
        retry_at=None,
    )
    run.note(f"Ended: {State(state).label}." + (f" {reason}" if reason else ""))
    run.refresh_from_db()


def carry_on(run: Run, *, seconds: float | None = None) -> Run:
    """Works on a run until it ends, cannot continue, or `seconds` are over. Returns its row as it is then.

    Never raises errors of the work: they set the state of the run. Does nothing if another process works on it.
    """
    if lease := take(run.pk, seconds=seconds):
        with suppress(Exception):  # it is in the run's row and in the log
            work(kind_named(lease.run.kind), lease)
    run.refresh_from_db()
    return run


def carry_out(run: Run, *, watch: Callable[[Run], object] = lambda run: None) -> Run:
    """Works on a run until it ends, waits for something, or a person paused or stopped it. Returns its row as it is.

    For commands: waits while a worker has the run. `watch` is called with the row at intervals. Raises errors of the
    work; a worker retries later.
    """
    while run.state == State.RUNNING or is_due(run):
        if lease := take(run.pk, seconds=WATCH_SECONDS):
            work(kind_named(lease.run.kind), lease)
        else:
            stopping.wait(WATCH_SECONDS)
        run.refresh_from_db()
        watch(run)
    return run


def is_due(run: Run) -> bool:
    """Whether a waiting run may be taken now."""
    return Run.objects.workable().filter(pk=run.pk).exists()


def work(kind: RunKind, lease: Lease) -> None:
    """Works until the work is done or cannot continue, and leaves the row as it must be then.

    Raises errors of the work itself, after they were stored in the row.
    """
    try:
        try_to_work(kind, lease)
    except Interrupted:
        lease.release()
    except LeaseLost:
        logger.info("run %s was taken over by another worker", lease.run.pk)
    except KeyboardInterrupt:
        close_broken_connection()
        lease.release()
        raise
    except (OperationalError, InterfaceError) as problem:
        logger.warning("run %s: %s", lease.run.pk, type(problem).__name__)
        close_broken_connection()
        try:
            lease.fail_once(problem)
        except (OperationalError, InterfaceError):
            logger.warning("run %s: the database is unavailable; the lease expires by itself", lease.run.pk)
        raise
    except Exception as problem:
        logger.exception("run %s failed", lease.run.pk)
        lease.fail_once(problem)
        raise


def try_to_work(kind: RunKind, lease: Lease) -> None:
    try:
        kind.work(lease)
        lease.end()
    except Wait as problem:
        lease.wait(str(problem), problem.retry_after)
    except NeedsDecision as problem:
        lease.stop(str(problem))


def close_broken_connection() -> None:
    """The next query opens a new one."""
    if not connection.in_atomic_block:
        connection.close()
