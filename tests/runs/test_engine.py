"""The engine of runs in one process: chunks, slices, pauses, failures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.timezone import now
from procrastinate.contrib.django.models import ProcrastinateJob

from memadmin.audit.models import AuditEvent
from memadmin.runs import engine, jobs, services
from memadmin.runs.engine import NeedsDecision, Wait, carry_on, take
from memadmin.runs.models import Run
from tests.people import person
from tests.runs import moving
from tests.runs.conftest import ROWS, let_the_lease_expire
from tests.runs.moving import count_done

pytestmark = pytest.mark.django_db

State = Run.State
At = Callable[[str, Callable[[], None]], None]


def failing(problem: Exception) -> Callable[[], None]:
    def act() -> None:
        raise problem

    return act


def log_of(run: Run) -> list[str]:
    return [entry.text for entry in run.log.order_by("pk")]


def test_a_run_ends_complete_with_its_counts(run: Run) -> None:
    carry_on(run)
    assert (run.state, run.done, run.counters) == (State.COMPLETE, ROWS, {"odd": 23})
    assert (run.started_at, run.ended_at, run.lease_until) != (None, None, None)
    assert run.lease_until is None
    assert count_done() == (ROWS, ROWS)
    assert log_of(run) == ["Started.", "Ended: complete."]


def test_what_was_left_makes_it_complete_with_exceptions(run: Run, at: At) -> None:
    lease = take(run.pk)
    assert lease
    with lease.chunk() as row:
        row.add_exception("odd", "main", 2)
        row.add_exception("odd", "main")
    lease.end()
    run.refresh_from_db()
    assert (run.state, run.exceptions) == (State.COMPLETE_WITH_EXCEPTIONS, [["odd", "main", 3]])


def test_a_slice_ends_after_a_chunk_and_the_next_one_continues(run: Run) -> None:
    carry_on(run, seconds=0)
    assert (run.state, run.done, run.cursor, run.lease_until) == (State.RUNNING, 10, 10, None)
    slices = 1
    while not run.is_finished:
        carry_on(run, seconds=0)
        slices += 1
    assert slices == 6
    assert count_done() == (ROWS, ROWS)


def test_a_worker_that_was_asked_to_end_hands_the_run_over(run: Run, at: At) -> None:
    at("written", engine.stopping.set)
    try:
        carry_on(run)
    finally:
        engine.stopping.clear()
    assert (run.state, run.done, run.lease_until) == (State.RUNNING, 10, None)
    carry_on(run)
    assert count_done() == (ROWS, ROWS)


def test_nobody_takes_a_run_twice(run: Run) -> None:
    first = take(run.pk)
    assert first
    assert take(run.pk) is None
    let_the_lease_expire(run)
    second = take(run.pk)
    assert second
    assert second.token == first.token + 1
    with pytest.raises(engine.LeaseLost), first.chunk():
        pytest.fail("the first one writes")
    with second.chunk() as row:
        row.done = 7
    assert "did not respond" in log_of(run)[1]


def test_paused_it_does_nothing_until_it_is_resumed(run: Run, at: At) -> None:
    compliance = person("compliance")
    at("locked", lambda: services.change(run, state=State.PAUSED))
    carry_on(run)
    # Within one connection the chunk that was under way is written; the next one is refused.
    assert (run.state, run.done) == (State.PAUSED, 10)
    carry_on(run)
    assert run.done == 10
    services.resume_run(run, by=compliance)
    carry_on(run)
    assert (run.state, run.done) == (State.COMPLETE, ROWS)
    assert [event.type for event in AuditEvent.objects.filter(type__startswith="run.")] == ["run.resumed"]


def test_pausing_says_who_and_why(run: Run) -> None:
    compliance = person("compliance")
    paused = services.pause_run(run, by=compliance, note="after office hours")
    assert (paused.state, paused.reason, paused.reason_by) == (State.PAUSED, "after office hours", compliance)
    with pytest.raises(services.InvalidRunState, match="is paused and cannot be paused"):
        services.pause_run(run, by=compliance)
    assert AuditEvent.objects.filter(type="run.paused").count() == 1


def test_cancelled_it_ends_and_what_is_done_stays_done(run: Run) -> None:
    compliance = person("compliance")
    carry_on(run, seconds=0)
    cancelled = services.cancel_run(run, by=compliance)
    assert (cancelled.state, cancelled.done, cancelled.is_finished) == (State.CANCELLED, 10, True)
    carry_on(run)
    assert count_done() == (10, 10)
    for verb in (services.cancel_run, services.resume_run, services.pause_run):
        with pytest.raises(services.InvalidRunState):
            verb(run, by=compliance)


def test_an_error_is_tried_again_later_and_writes_nothing(run: Run, at: At) -> None:
    at("written", failing(ValueError("Ada Lovelace")))
    carry_on(run)
    assert (run.state, run.attempts, run.done) == (State.WAITING, 1, 0)
    assert run.retry_at
    assert run.retry_at > now()
    assert count_done() == (0, 0)
    # What the error says may be somebody's data.
    assert "ValueError" in run.reason
    assert "Ada" not in run.reason + "".join(log_of(run))
    carry_on(run)
    assert run.done == 0, "it was not due yet"
    services.change(run, retry_at=now() - timedelta(seconds=1))
    carry_on(run)
    assert (run.state, run.attempts, run.reason) == (State.COMPLETE, 0, "")


def test_after_five_errors_in_a_row_it_fails_until_somebody_resumes_it(
    run: Run, at: At, caplog: pytest.LogCaptureFixture
) -> None:
    waits = []
    while not run.is_finished:
        at("begin", failing(OperationalError("deadlock")))
        before = now()
        carry_on(run)
        waits.append(round((run.retry_at - before).total_seconds()) if run.retry_at else 0)
        services.change(run, retry_at=None)
    assert (run.state, waits) == (State.FAILED, [5, 10, 20, 40, 0])
    assert AuditEvent.objects.get(type="run.failed").outcome == "failed"
    services.resume_run(run, by=person("administrator"))
    carry_on(run)
    assert (run.state, count_done()) == (State.COMPLETE, (ROWS, ROWS))


def test_a_chunk_that_works_ends_the_row_of_errors(run: Run, at: At) -> None:
    services.change(run, attempts=4)
    carry_on(run, seconds=0)
    assert run.attempts == 0


def test_it_waits_where_it_cannot_continue(run: Run, at: At) -> None:
    at("begin", failing(Wait("The store main is unreachable.", retry_after=timedelta(minutes=3))))
    carry_on(run)
    assert (run.state, run.reason, run.attempts) == (State.WAITING, "The store main is unreachable.", 0)
    assert not Run.objects.workable().exists()


def test_it_stops_where_a_person_must_decide(run: Run, at: At) -> None:
    at("begin", failing(NeedsDecision("Twice its preview.")))
    carry_on(run)
    assert (run.state, run.reason) == (State.STOPPED, "Twice its preview.")
    assert not Run.objects.workable().exists()
    assert AuditEvent.objects.filter(type="run.stopped").count() == 1
    services.resume_run(run, by=person("compliance"))
    carry_on(run)
    assert run.state == State.COMPLETE


def test_a_kind_that_nobody_knows_waits(db: None) -> None:
    run = services.request_run("of_a_later_version")
    carry_on(run)
    assert run.state == State.WAITING
    assert "does not support runs of the kind of_a_later_version" in run.reason


@pytest.mark.parametrize(("took", "rows"), [(0.01, 200), (0.2, 100), (0.5, 50), (60, 10)])
def test_chunks_adapt_to_a_quarter_of_a_second(run: Run, took: float, rows: int) -> None:
    lease = take(run.pk)
    assert lease
    lease._adapt(took)
    assert lease._rows == rows
    for _ in range(20):
        lease._adapt(0.01)
    assert lease._rows == 1000


def test_work_with_larger_chunks_leaves_the_others_as_they_are(run: Run) -> None:
    lease = take(run.pk)
    assert lease
    sizes: list[int] = []

    def step(run: Run, at_most: int) -> int:
        sizes.append(at_most)
        return 0

    lease.in_chunks(step, most_rows=5_000)
    for _ in range(10):
        lease._adapt(0.01)
    lease.in_chunks(step, most_rows=5_000)
    lease.in_chunks(step)
    assert sizes == [100, 5_000, 1_000]


def test_a_state_and_its_end_belong_together(run: Run) -> None:
    for columns in ({"state": State.COMPLETE}, {"ended_at": now()}):
        with pytest.raises(IntegrityError, match="run_state_says_whether_it_ended"), transaction.atomic():
            Run.objects.filter(pk=run.pk).update(**columns)


# --- jobs -------------------------------------------------------------------------------------------------------------


def queued() -> list[int]:
    waiting = ProcrastinateJob.objects.filter(task_name="memadmin.runs.jobs.work_on_run", status="todo")
    return [job.args["run_id"] for job in waiting]


def test_a_request_queues_one_job_in_its_transaction(db: None) -> None:
    with transaction.atomic():
        run = services.request_run("test_moving")
        # Refused as it is queued already, which leaves the transaction usable.
        jobs.defer_work(run.pk)
        assert Run.objects.count() == 1
    assert queued() == [run.pk]
    with transaction.atomic():
        services.request_run("test_moving")
        transaction.set_rollback(True)
    assert queued() == [run.pk]


def test_a_run_whose_job_was_lost_is_queued_again(run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    paused = services.request_run("test_moving", state=State.PAUSED)
    working = services.request_run("test_moving")
    assert take(working.pk)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    jobs.wake_runs(int(now().timestamp()))
    jobs.wake_runs(int(now().timestamp()))
    assert queued() == [run.pk]
    assert paused.pk != run.pk


def test_a_job_of_a_killed_worker_does_not_keep_the_run_from_others(run: Run) -> None:
    """A killed worker leaves its job as being done, for ever; the next one is queued and works all the same."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    jobs.wake_runs(int(now().timestamp()))
    assert queued() == [run.pk]
    jobs.work_on_run(run_id=run.pk)
    run.refresh_from_db()
    assert run.state == State.COMPLETE


def test_a_slice_queues_the_next_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SLICE_SECONDS", 0)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE procrastinate_jobs SET status = 'succeeded'")
    jobs.work_on_run(run_id=run.pk)
    assert queued() == [run.pk]
    jobs.work_on_run(run_id=run.pk + 1_000_000)


# --- many runs --------------------------------------------------------------------------------------------------------


def waiting_runs(count: int) -> list[Run]:
    """Runs that are due, without jobs."""
    return Run.objects.bulk_create(Run(kind="test_moving") for _ in range(count))


def tick() -> None:
    jobs.wake_runs(int(now().timestamp()))


def work_off_the_queue() -> list[int]:
    """Does the queued jobs as a worker would, and returns the runs in the order of their jobs."""
    done = queued()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs WHERE status = 'todo'")
    for run_id in done:
        jobs.work_on_run(run_id=run_id)
    return done


def test_the_cost_of_waking_does_not_grow_with_the_runs(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def statements(count: int) -> int:
        waiting_runs(count)
        with CaptureQueriesContext(connection) as captured:
            tick()
        return len(captured)

    monkeypatch.setattr(jobs, "MOST_QUEUED", 20)
    few = statements(30)
    assert len(queued()) == 20
    work_off_the_queue()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    assert statements(2_000) == few
    assert len(queued()) == 20


def test_what_is_queued_is_not_tried_again(db: None) -> None:
    """Each refused job was three statements, every five seconds, for each run of a batch."""
    runs = waiting_runs(3)
    tick()
    with CaptureQueriesContext(connection) as captured:
        tick()
    assert [query["sql"] for query in captured if "defer_job" in query["sql"]] == []
    assert sorted(queued()) == [run.pk for run in runs]


def test_every_run_gets_its_turn_while_others_wait_again_and_again(
    run: Run, at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five times as many are due as are queued, and each that had its turn is due again at once."""
    monkeypatch.setattr(jobs, "MOST_QUEUED", 4)
    monkeypatch.setattr(moving, "come_to", lambda place: failing(Wait("Not yet.", retry_after=timedelta(0)))())
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs")
    everyone = {run.pk, *(each.pk for each in waiting_runs(19))}
    had_their_turn: set[int] = set()
    for _ in range(5):
        tick()
        had_their_turn.update(work_off_the_queue())
    assert had_their_turn == everyone


def test_runs_that_queue_themselves_keep_no_other_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "MOST_QUEUED", 3)
    monkeypatch.setattr(engine, "SLICE_SECONDS", 0)
    for _ in range(2):
        services.request_run("test_moving")
    late = waiting_runs(1)[0]
    assert len(queued()) == 3
    tick()
    assert queued()[-1] == late.pk
