"""Sweeps that are killed, frozen, stopped, cancelled or held in between: nothing is done twice, or half in silence."""

from __future__ import annotations

import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.retention.models import PolicyVersion, SweepResult, UnfinishedExpiry
from memadmin.retention.sweep import starting
from memadmin.retention.sweep.starting import request_sweep
from memadmin.retention.targets import sessions
from memadmin.retention.targets.after_sessions import delete_what_hung_on
from memadmin.retention.targets.sessions import SessionTarget
from memadmin.runs import engine
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from memadmin.runs.services import cancel_run
from memories_app.models import Evidence, Signal
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.erasing_subjects import fence_subject
from sessions_app.stores.sqlalchemy import backend as main_backend
from tests.agents import add_items, run_sql, second_connection, value_of
from tests.builders import make_subject
from tests.erasure.faults import Worker
from tests.forks import PROCESSES
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.memories.builders import approved as approved_memory
from tests.people import person
from tests.retention import swept_and_killed
from tests.retention.builders import make_hold
from tests.retention.policies import age, in_force, swept
from tests.runs.conftest import let_the_lease_expire
from tests.waiting import PATIENCE_SECONDS

LONG = 25
"""Items of the long session: several chunks."""

BEFORE_CHUNKS = 4
"""Transactions of a run before its first chunk: its instant, what is due at the place, the sum, the place prepared."""


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def policy(kept_main_store: SessionStore) -> PolicyVersion:
    """In force on a long and two short sessions that are due, and a young one."""
    for name, items, days in (("long", LONG, 60), ("short:1", 3, 50), ("short:2", 3, 40), ("young", 2, 20)):
        add_items(name, *(f"item {number}" for number in range(items)))
        age(name, timedelta(days=days))
    return in_force("Chats", days=30)


def items_of(session_id: str) -> int:
    return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id = '{session_id}'"))


def on_record() -> set[str]:
    return set(SessionRecord.objects.values_list("session_id", flat=True))


def finished_once(run: Run) -> None:
    """Everything that was due is gone, and was counted and said once."""
    run.refresh_from_db()
    assert run.state == Run.State.COMPLETE, (run.state, run.reason, run.exceptions)
    assert on_record() == {"young"}
    assert (items_of("young"), value_of("SELECT count(*) FROM agent_messages")) == (2, 2)
    assert value_of("SELECT count(*) FROM agent_sessions") == 1
    result = SweepResult.objects.get(run=run)
    assert (result.state, result.taken, result.items, result.left) == ("done", 3, LONG + 6, {})
    assert result.tables["sessions_app_sessionrecord"] == 3
    assert run.counters["items"] == LONG + 6
    assert not UnfinishedExpiry.objects.exists()
    told = AuditEvent.objects.filter(type="retention.rows_expired").values_list("counters", flat=True)
    assert (sum(each["rows"] for each in told), sum(each["items"] for each in told)) == (3, LONG + 6)


def a_chunk(run: Run) -> Run:
    """The next part of a run, up to the first point at which it can be handed over."""
    return carry_on(run, seconds=0)


def begun(run: Run) -> int:
    """Works until some items of the long session are gone; returns how many are left."""
    for _ in range(20):
        if items_of("long") < LONG:
            break
        a_chunk(run)
    assert SessionRecord.objects.get(session_id="long").erased_at
    assert 0 < items_of("long") < LONG
    return items_of("long")


# --- killed -----------------------------------------------------------------------------------------------------------


def kill_at(point: int, run: Run) -> bool:
    args = (connection.settings_dict["NAME"], ours.DATA_DIR, run.pk, point, 10)
    worker = PROCESSES.Process(target=swept_and_killed.main, args=args)
    worker.start()
    worker.join()
    run_sql("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
    assert worker.exitcode in (0, -signal.SIGKILL)
    return worker.exitcode == -signal.SIGKILL


@pytest.mark.slow
def test_killed_around_and_within_every_transaction(policy: PolicyVersion) -> None:
    """Each process is killed one point later than the last, until a transaction is committed; then the next."""
    record = SessionRecord.objects.get(session_id="short:1")
    Evidence.objects.create(memory=approved_memory("tea"), record_id=record.pk, session_id="short:1", item_id="1")
    Signal.objects.create(record_id=record.pk, session_id="short:1", kind="preference", text="tea")
    run = request_sweep()
    kills, point, committed = 0, 1, None
    while kill_at(point, run):
        kills += 1
        assert kills < 200
        if 0 < items_of("long") < LONG:
            assert UnfinishedExpiry.objects.exists(), "half of a session is gone, and nothing says so"
            assert SessionRecord.objects.get(session_id="long").erased_at, "an agent could write into it"
        there = value_of("SELECT string_agg(session_id, ' ' ORDER BY session_id) FROM agent_sessions")
        assert set(there.split()) == on_record()
        assert Signal.objects.exists() == ("short:1" in on_record())
        run.refresh_from_db()
        point, committed = (point + 1 if run.chunk_at == committed else 1), run.chunk_at
    assert kills > 20, "fewer kills than the sweep has transactions"
    finished_once(run)
    assert Evidence.objects.get().gone_at


def test_asked_to_stop_it_leaves_after_the_chunk(
    policy: PolicyVersion, small_chunks: None, after_chunk: Callable[[int, Callable[[], object]], None]
) -> None:
    run = request_sweep()
    after_chunk(2, engine.stopping.set)
    try:
        carry_on(run)
        left = items_of("long")
        assert 0 < left < LONG
        run.refresh_from_db()
        assert (run.state, run.lease_until) == (Run.State.RUNNING, None)
    finally:
        engine.stopping.clear()
    carry_on(run)
    finished_once(run)


def test_asked_to_stop_it_does_not_wait_for_its_counting(policy: PolicyVersion) -> None:
    """The count would never end here: somebody has locked the table. Its query is cancelled, and nothing is noted."""
    run = request_sweep()
    Run.objects.filter(pk=run.pk).update(parameters={**run.parameters, starting.INSTANT: now().isoformat()})
    with somebody_else() as beside, second_connection() as locking:
        locking.execute("BEGIN; LOCK TABLE sessions_app_sessionrecord")
        try:
            worker = beside(lambda: carry_on(run))
            wait_until_blocked(worker, by=locking)
            engine.stopping.set()
            left = worker.result(PATIENCE_SECONDS)
        finally:
            locking.rollback()
            engine.stopping.clear()
    assert (left.state, left.lease_until, left.attempts) == (Run.State.RUNNING, None, 0)
    assert not SweepResult.objects.exists()
    carry_on(run)
    finished_once(run)


@pytest.mark.parametrize("counting", ["count", "begin", "count_rows"])
def test_asked_to_stop_while_it_counts_it_counts_again(
    policy: PolicyVersion, counting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = getattr(SessionTarget, counting)

    def ask_to_stop(*args: Any) -> Any:
        engine.stopping.set()
        return usual(*args)

    run = request_sweep()
    with monkeypatch.context() as asking:
        asking.setattr(SessionTarget, counting, ask_to_stop)
        try:
            carry_on(run)
        finally:
            engine.stopping.clear()
    run.refresh_from_db()
    assert (run.state, run.lease_until) == (Run.State.RUNNING, None)
    carry_on(run)
    finished_once(run)


# --- frozen, and two at once ------------------------------------------------------------------------------------------


def replaced(run: Run, zombie: Worker) -> tuple[Any, Any]:
    """What there is before a frozen worker wakes up, when another has finished its run, and after its end."""

    def everything() -> Any:
        tables = [SessionRecord, SweepResult, UnfinishedExpiry, Run, AuditEvent]
        rows = [list(model.objects.order_by("pk").values()) for model in tables]  # type: ignore[attr-defined]
        return [*rows, value_of("SELECT count(*) FROM agent_messages")]

    zombie.send(signal.SIGSTOP)
    let_the_lease_expire(run)
    carry_on(run)
    before = everything()
    zombie.send(signal.SIGCONT)
    zombie.goes_on_to_its_end()
    return before, everything()


@pytest.mark.parametrize("number", [1, BEFORE_CHUNKS + 1, BEFORE_CHUNKS + 2])
def test_frozen_and_replaced_it_changes_nothing_more(
    policy: PolicyVersion, start: Callable[..., Worker], number: int
) -> None:
    run = request_sweep()
    before, after = replaced(run, start(run, number))
    assert before == after
    finished_once(run)


def test_without_the_token_it_would(policy: PolicyVersion, start: Callable[..., Worker]) -> None:
    run = request_sweep()
    before, after = replaced(run, start(run, BEFORE_CHUNKS + 1, "without_token"))
    assert before != after, "the broken variant is not broken"


def test_two_workers_have_one_effect(policy: PolicyVersion) -> None:
    run = request_sweep()
    with somebody_else() as beside:
        other = beside(lambda: carry_on(Run.objects.get(pk=run.pk)))
        carry_on(run)
        other.result()
    finished_once(run)


def test_what_another_run_took_meanwhile_is_not_fenced(policy: PolicyVersion, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs, of all policies and of one, come to the same sessions."""
    select = SessionTarget.next_records

    def select_late(self: SessionTarget, *given: Any, count: int) -> list[SessionRecord]:
        found = select(self, *given, count=count)
        monkeypatch.setattr(SessionTarget, "next_records", select)
        with somebody_else() as beside:
            beside(lambda: swept("Chats")).result()
        return found

    monkeypatch.setattr(SessionTarget, "next_records", select_late)
    # That run waits for no hold: each has a share in the lock of holds.
    run = swept()
    assert run.state == Run.State.COMPLETE, (run.reason, run.exceptions)
    assert on_record() == {"young"}
    results = SweepResult.objects.all()
    assert (sum(each.taken for each in results), sum(each.items for each in results)) == (3, LONG + 6)
    add_items("short:1", "again")
    assert items_of("short:1") == 1


# --- unfinished -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancelled", "ended", "changed"])
def test_what_was_begun_is_finished_by_the_next_run(policy: PolicyVersion, small_chunks: None, end: str) -> None:
    run = request_sweep()
    begun(run)
    if end == "cancelled":
        cancel_run(run)
    elif end == "ended":
        in_force(policy=policy.policy, days=30, is_end=True)
    else:
        in_force(policy=policy.policy, days=3650)
    if end == "cancelled":
        run = swept()
    else:
        carry_on(run)
    assert "long" not in on_record()
    assert items_of("long") == 0
    assert not UnfinishedExpiry.objects.exists()
    if end == "cancelled":
        assert on_record() == {"young"}
        return
    # The others were not begun: they follow what is in force now.
    assert on_record() == {"short:1", "short:2", "young"}
    result = SweepResult.objects.get(run=run, version=policy)
    assert (result.state, result.taken, result.items) == ("skipped", 1, LONG)
    assert "changed or ended" in result.reason


def test_a_run_under_another_policy_finishes_it(policy: PolicyVersion, small_chunks: None) -> None:
    run = request_sweep()
    left = begun(run)
    cancel_run(run)
    in_force(policy=policy.policy, days=30, is_end=True)
    in_force("Others", agent="nobody")
    run = swept("Others")
    assert on_record() == {"short:1", "short:2", "young"}
    result = SweepResult.objects.get(run=run, version=policy)
    assert (result.taken, result.items) == (1, left)


def test_an_erasure_that_took_it_over_keeps_the_fence(policy: PolicyVersion, small_chunks: None) -> None:
    subject = make_subject("ada")
    SessionRecord.objects.filter(session_id="long").update(subject=subject)
    run = request_sweep()
    left = begun(run)
    with transaction.atomic():
        fence_subject(subject)
    carry_on(run)
    assert SessionRecord.objects.get(session_id="long").erased_at
    assert items_of("long") == left, "the rest is the erasure's"
    assert on_record() == {"long", "young"}


# --- held in between --------------------------------------------------------------------------------------------------


def test_a_hold_between_two_chunks_keeps_the_rest(policy: PolicyVersion, small_chunks: None, officer: User) -> None:
    run = request_sweep()
    left = begun(run)
    make_hold(SessionRecord.objects.get(session_id="long"), by=officer)
    carry_on(run)
    assert items_of("long") == left
    assert on_record() == {"long", "young"}
    record = SessionRecord.objects.get(session_id="long")
    assert (record.erased_at, UnfinishedExpiry.objects.exists()) == (None, False)
    result = SweepResult.objects.get()
    assert (result.taken, result.items, result.held) == (2, LONG - left + 6, 1)
    run.refresh_from_db()
    assert (run.state, run.counters["held"]) == (Run.State.COMPLETE, 1)
    add_items("long", "the agent goes on")
    assert items_of("long") == left + 1


@pytest.mark.parametrize("number", [BEFORE_CHUNKS + 1, BEFORE_CHUNKS + 2])
def test_a_hold_in_the_middle_of_a_chunk_waits_for_its_end(
    policy: PolicyVersion, start: Callable[..., Worker], officer: User, number: int
) -> None:
    """In the first chunk of a long session, where a trigger asks for holds, and in the second, where none does."""
    add_items("long", *(f"further item {number}" for number in range(600)))
    age("long", timedelta(days=60))
    run = request_sweep()
    worker = start(run, number, "within")
    record = SessionRecord.objects.get(session_id="long")
    with somebody_else() as beside:
        placing = beside(lambda: make_hold(record, by=officer))
        wait_until_blocked(placing)
        worker.goes_on_to_its_end()
        placing.result()
    left = items_of("long")
    assert 0 <= left < LONG + 600
    carry_on(run)
    # Nothing more has gone since the hold is there, and what was left is not fenced.
    assert items_of("long") == left
    assert SessionRecord.objects.filter(session_id="long", erased_at=None).exists() == bool(left)


def test_a_hold_on_what_its_memory_also_rests_on_keeps_both(policy: PolicyVersion, officer: User) -> None:
    memory = approved_memory("likes tea")
    for name in ("short:1", "young"):
        record = SessionRecord.objects.get(session_id=name)
        Evidence.objects.create(memory=memory, record_id=record.pk, session_id=name, item_id="1", quote="tea")
    make_hold(SessionRecord.objects.get(session_id="young"), by=officer)
    run = swept()
    assert on_record() == {"short:1", "young"}
    assert Evidence.objects.filter(quote="tea").count() == 2
    result = SweepResult.objects.get(run=run)
    assert (result.previewed, result.taken, result.held, result.backlog) == (2, 2, 1, 0)


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main_backend, "ERASE_PATIENCE", timedelta(milliseconds=400))


def test_a_session_that_an_agent_is_writing_to_stays(policy: PolicyVersion, impatient: None) -> None:
    run = request_sweep()
    with second_connection() as agent:
        agent.execute("SELECT FROM agent_sessions WHERE session_id = 'short:1' FOR UPDATE")
        agent.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('short:1', '{}')")
        agent.execute("UPDATE agent_sessions SET updated_at = now() WHERE session_id = 'short:1'")
        carry_on(run)
        agent.commit()
    assert on_record() == {"short:1", "young"}
    assert items_of("short:1") == 4
    result = SweepResult.objects.get()
    assert (result.taken, result.left) == (2, {"busy": 1})


def test_a_session_that_was_written_to_after_its_selection_stays(
    policy: PolicyVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = SessionTarget.next_records

    def select_and_write(self: SessionTarget, *given: Any, count: int) -> list[SessionRecord]:
        found = select(self, *given, count=count)
        monkeypatch.setattr(SessionTarget, "next_records", select)
        with somebody_else() as beside:
            beside(lambda: add_items("short:1", "I am back")).result()
        return found

    monkeypatch.setattr(SessionTarget, "next_records", select_and_write)
    swept()
    assert on_record() == {"short:1", "young"}
    assert items_of("short:1") == 4


def test_an_agent_that_begins_again_meanwhile_has_a_new_session(
    policy: PolicyVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the end of the chunk, which has deleted the registry row and not yet the session."""
    upsert = (
        "INSERT INTO agent_sessions (session_id) VALUES ('short:1')"
        " ON CONFLICT (session_id) DO UPDATE SET updated_at = timezone('UTC', now())"
    )
    before = SessionRecord.objects.get(session_id="short:1").pk
    delete = delete_what_hung_on
    with somebody_else() as beside:

        def begin_again(records: Any) -> Any:
            monkeypatch.setattr(sessions, "delete_what_hung_on", delete)
            wait_until_blocked(beside(lambda: run_sql(upsert)))
            return delete(records)

        monkeypatch.setattr(sessions, "delete_what_hung_on", begin_again)
        run = swept()
    assert run.state == Run.State.COMPLETE, (run.reason, run.exceptions)
    assert on_record() == {"short:1", "young"}
    again = SessionRecord.objects.get(session_id="short:1")
    assert (again.pk != before, again.erased_at, items_of("short:1")) == (True, None, 0)
    assert value_of("SELECT count(*) FROM agent_sessions") == 2


def test_never_within_the_hour(policy: PolicyVersion) -> None:
    """By the clock of creation it is due; it is in use all the same."""
    in_force(policy=policy.policy, clock="created", days=30)
    for name, minutes in (("short:1", 59), ("short:2", 61)):
        run_sql(
            f"UPDATE agent_sessions SET updated_at = timezone('UTC', now()) - interval '{minutes} minutes'"
            f" WHERE session_id = '{name}'"
        )
    swept()
    assert on_record() == {"short:1", "young"}
    assert SweepResult.objects.get().live == 1
