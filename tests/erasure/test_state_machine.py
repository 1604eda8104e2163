"""An erasure beside all that can happen meanwhile, in any order: agents, holds, crashes, and zombies of workers."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from hypothesis.strategies import sampled_from
from psycopg import IsolationLevel
from sqlalchemy.exc import DBAPIError

from memadmin.erasure import work
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.steps import sessions as sessions_step
from memadmin.retention.holds.services import HoldError
from memadmin.retention.models import LegalHold
from memadmin.runs import engine
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from memories_app.models import Memory
from sessions_app.models import SessionRecord, SubjectAlias
from tests.agents import add_items, attach_main_store, run_sql, second_connection, value_of
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import erased_of, items_of, retry, with_sessions
from tests.memories.builders import proposed
from tests.people import person
from tests.retention.builders import make_hold, released

State = SubjectRequest.State

ITEMS, SESSIONS = 6, 2
NUMBERS = itertools.count(1)

OF_SESSION = "SELECT count(*) FROM agent_messages WHERE session_id = '{}'"
WRITE_LATE = 'INSERT INTO agent_messages (session_id, message_data) VALUES (%s, \'{"role": "user"}\')'


class Crash(Exception):
    """The process ends here."""


class Meanwhile(RuleBasedStateMachine):
    """One person and one erasure; the bystander is the same for all."""

    officer: ClassVar[User]
    second: ClassVar[User]

    def __init__(self) -> None:
        super().__init__()
        self.key = f"person{next(NUMBERS)}x"
        self.subject = with_sessions(self.key, by=self.officer, sessions=SESSIONS, items=ITEMS)
        self.request = approved(self.subject, by=self.officer, second=self.second)
        assert self.request.run is not None
        self.run = self.request.run
        self.written = SESSIONS * ITEMS
        self.memories = 0
        self.holds: list[tuple[LegalHold, str, int]] = []
        self.late: list[psycopg.Connection[Any]] = []
        self.zombies: list[engine.Lease] = []
        self.stack = ExitStack()

    def is_started(self) -> bool:
        self.request.refresh_from_db()
        return self.request.is_started

    # --- agents -------------------------------------------------------------------------------------------------------

    @rule(number=sampled_from(range(SESSIONS)))
    def an_agent_writes(self, number: int) -> None:
        """Until its session is erased."""
        is_erased = not SessionRecord.objects.filter(session_id=f"{self.key}:{number}", erased_at=None).exists()
        try:
            add_items(f"{self.key}:{number}", "one more")
        except DBAPIError:
            assert is_erased
        else:
            assert not is_erased, "an erased session was written to"
            self.written += 1

    @rule()
    def an_agent_begins_a_session(self) -> None:
        """Refused from the first transaction of the erasure on; before, a session without items is begun."""
        is_started, register = self.is_started(), "SELECT memadmin_register_session('main', %s, 'user', %s)"
        with second_connection(autocommit=True) as agent:
            try:
                agent.execute(register, [f"{self.key}:new{next(NUMBERS)}", self.key])
            except psycopg.Error:
                assert is_started
            else:
                assert not is_started, "a session of an erased person was registered"

    @rule()
    def something_is_learned(self) -> None:
        is_started = self.is_started()
        try:
            with transaction.atomic():
                proposed(f"{self.key} likes tea {next(NUMBERS)}", subject=self.subject)
        except DatabaseError:
            assert is_started
        else:
            assert not is_started, "a memory about an erased person was stored"
            self.memories += 1

    @rule(level=sampled_from([IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ]))
    def a_transaction_of_an_agent_begins(self, level: IsolationLevel) -> None:
        agent = self.stack.enter_context(second_connection())
        agent.isolation_level = level
        agent.execute("SELECT count(*) FROM agent_messages")
        self.late.append(agent)

    @precondition(lambda self: self.late)
    @rule()
    def it_writes_late(self) -> None:
        agent = self.late.pop()
        with suppress(psycopg.Error):
            agent.execute(WRITE_LATE, [f"{self.key}:0"])
            agent.commit()
            self.written += 1
        agent.rollback()

    # --- holds --------------------------------------------------------------------------------------------------------

    @rule(on_subject=sampled_from([True, False]))
    def a_hold_is_placed(self, on_subject: bool) -> None:
        record = SessionRecord.objects.filter(session_id=f"{self.key}:0").first()
        covers = self.subject if on_subject else record
        if covers is None:
            return
        query = OF_SESSION.format(f"{self.key}:0")
        with suppress(HoldError):
            hold = make_hold(covers, by=self.officer)
            self.holds.append((hold, "" if on_subject else query, self.count_of("" if on_subject else query)))

    @precondition(lambda self: self.holds)
    @rule()
    def a_hold_is_released(self) -> None:
        released(self.holds.pop()[0], by=self.officer, second=self.second)

    def count_of(self, query: str) -> int:
        return int(value_of(query)) if query else items_of(self.key)

    # --- workers ------------------------------------------------------------------------------------------------------

    @rule()
    def a_worker_works(self) -> None:
        """One transaction, at least."""
        retry(self.run)
        if lease := engine.take(self.run.pk, seconds=0):
            engine.work(kind_named(lease.run.kind), lease)

    @rule()
    def a_worker_crashes_within_a_transaction(self) -> None:
        retry(self.run)
        if lease := engine.take(self.run.pk):
            with suppress(Crash), lease.chunk():
                run_sql(f"DELETE FROM agent_messages WHERE session_id LIKE '{self.key}:%'")
                raise Crash
            Run.objects.filter(pk=self.run.pk).update(lease_until="2020-01-01T00:00:00Z")
            self.zombies.append(lease)

    @precondition(lambda self: self.zombies)
    @rule()
    def it_wakes_up(self) -> None:
        zombie = self.zombies.pop()
        self.run.refresh_from_db()
        if zombie.token != self.run.token:
            with pytest.raises(engine.LeaseLost), zombie.chunk():
                pass

    # --- what is always true ------------------------------------------------------------------------------------------

    @invariant()
    def nothing_goes_before_it_is_said(self) -> None:
        """E-1 of the requirements."""
        assert items_of(self.key) == self.written or self.is_started()

    @invariant()
    def what_is_held_stays(self) -> None:
        for _, query, count in self.holds:
            assert self.count_of(query) >= count, "a held row was erased"

    @invariant()
    def nobody_else_is_touched(self) -> None:
        assert items_of("bystander") == SESSIONS * ITEMS

    def teardown(self) -> None:
        """In the end everything is erased, and counted exactly."""
        with self.stack:
            # What was wrong before is what is to be told.
            if sys.exc_info()[0] is None:
                self.everything_ends()

    def everything_ends(self) -> None:
        while self.late:
            self.it_writes_late()
        while self.holds:
            self.a_hold_is_released()
        for _ in range(10):
            retry(self.run)
            self.run.refresh_from_db()
            if self.run.state == Run.State.STOPPED:
                resume_run(self.run, by=self.officer)
            work_off(self.request)
            if self.request.state == State.SCANNING:
                break
        self.run.refresh_from_db()
        assert self.request.state == State.SCANNING, self.run.reason
        assert items_of(self.key) == 0
        assert not SessionRecord.objects.filter(session_id__startswith=f"{self.key}:").exists()
        assert not SubjectAlias.objects.filter(subject=self.subject).exists()
        assert not Memory.objects.filter(subject=self.subject).exists()
        counts = erased_of(self.request)
        assert (counts["sessions/main"], counts["memories"]) == (self.written, self.memories)


@pytest.fixture
def prepared(agent_tables: None) -> None:
    attach_main_store()
    Meanwhile.officer, Meanwhile.second = person("compliance"), person("compliance", "reviewer")
    with_sessions("bystander", by=Meanwhile.officer, sessions=SESSIONS, items=ITEMS)


EXAMPLES = [2, pytest.param(12, marks=pytest.mark.release)]


def try_everything(examples: int) -> None:
    """The same examples each time."""
    run_state_machine_as_test(
        Meanwhile,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            derandomize=True,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("examples", EXAMPLES)
def test_whatever_happens_meanwhile_nothing_is_left_and_what_is_held_stays(prepared: None, examples: int) -> None:
    try_everything(examples)


# --- broken variants: the shortest order of rules that shows it, and the search for one among all orders --------------


def without_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "fence_subject", lambda subject: None)


@contextmanager
def without_holds(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(work, "refuse_held", lambda scope: None)
    monkeypatch.setattr(sessions_step, "is_any_held", lambda records: False)
    with without_trigger("sessions_app_sessionrecord", "hold_refuses_erasure"):
        yield


def without_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.Lease, "_locked", lambda lease: Run.objects.get(pk=lease.run.pk))


def test_without_the_fence_a_session_is_begun(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile = Meanwhile()
    meanwhile.a_worker_works()
    meanwhile.an_agent_begins_a_session()
    without_fence(monkeypatch)
    meanwhile = Meanwhile()
    meanwhile.a_worker_works()
    with pytest.raises(AssertionError, match="of an erased person"):
        meanwhile.an_agent_begins_a_session()


def test_without_holds_a_held_row_goes(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile = Meanwhile()
    meanwhile.a_hold_is_placed(on_subject=True)
    work_a_while(meanwhile)
    with without_holds(monkeypatch):
        meanwhile = Meanwhile()
        meanwhile.a_hold_is_placed(on_subject=True)
        with pytest.raises(AssertionError, match="a held row was erased"):
            work_a_while(meanwhile)


def work_a_while(meanwhile: Meanwhile) -> None:
    for _ in range(10):
        meanwhile.a_worker_works()
        meanwhile.what_is_held_stays()


def test_without_the_token_a_zombie_writes(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    meanwhile = Meanwhile()
    meanwhile.a_worker_crashes_within_a_transaction()
    meanwhile.a_worker_works()
    meanwhile.it_wakes_up()
    meanwhile.a_worker_crashes_within_a_transaction()
    meanwhile.a_worker_works()
    without_token(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        meanwhile.it_wakes_up()


@pytest.mark.release
def test_broken_variant_without_the_fence_something_is_stored(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule sees it, or the erasure cannot end."""
    without_fence(monkeypatch)
    with pytest.raises(AssertionError, match=r"of an erased person|ValueError"):
        try_everything(12)


@pytest.mark.release
def test_broken_variant_without_holds_a_held_row_goes(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with without_holds(monkeypatch), pytest.raises(AssertionError, match="a held row was erased"):
        try_everything(12)


@pytest.mark.release
def test_broken_variant_without_the_token_a_zombie_writes(prepared: None, monkeypatch: pytest.MonkeyPatch) -> None:
    without_token(monkeypatch)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        try_everything(12)


@contextmanager
def without_trigger(table: str, trigger: str) -> Iterator[None]:
    run_sql(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
    try:
        yield
    finally:
        run_sql(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")
