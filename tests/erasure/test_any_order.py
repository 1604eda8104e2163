"""Whatever happens to a person's data in any order: what is held stays, what is erased is counted and stays away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck
from hypothesis import settings as effort
from hypothesis import strategies as some
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.retention.models import LegalHold
from memadmin.runs import engine
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from memories_app.models import Memory
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.sessions import attach_sessions
from tests.agents import attach_main_store, run_sql, value_of
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import retry
from tests.memories.builders import approved as approved_memory
from tests.memories.builders import proposed
from tests.people import person
from tests.retention.builders import make_hold, released

State = SubjectRequest.State

EXAMPLES = int(os.environ.get("MEMADMIN_ERASURE_EXAMPLES", "6"))
"""Sequences that are tried; `MEMADMIN_ERASURE_EXAMPLES=200` for many."""

SESSIONS, FIRST = 2, 12

numbers = count(1)


class Crash(Exception):
    """The process of the worker is gone."""


@contextmanager
def crashing_at(number: int) -> Iterator[None]:
    """The worker does not come to the end of its transaction of this number; 0 for one that is spared."""
    chunk, begun = engine.Lease.chunk, count(1)

    @contextmanager
    def breaking(lease: engine.Lease) -> Iterator[Run]:
        with chunk(lease) as run:
            yield run
            if next(begun) == number:
                raise Crash

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(engine.Lease, "chunk", breaking)
        yield


class AnyOrder(RuleBasedStateMachine):
    officer: User
    second: User

    def __init__(self) -> None:
        super().__init__()
        self.key, self.other_key = f"ada-{next(numbers)}", f"bob-{next(numbers)}"
        self.subject, self.other = self.new_person(self.key), self.new_person(self.other_key)
        self.written = dict.fromkeys(range(SESSIONS), FIRST)
        self.memories = 0
        self.request: SubjectRequest | None = None
        self.holds: dict[int | str, LegalHold] = {}
        self.kept: dict[int | str, int] = {}

    def new_person(self, key: str) -> Subject:
        subject = make_subject(key)
        for number in range(SESSIONS):
            self.insert(key, number, FIRST)
        attach_sessions(SessionRecord.objects.filter(session_id__startswith=f"{key}:"), subject, by=self.officer)
        proposed(f"about {key}", subject=subject)
        return subject

    def insert(self, key: str, number: int, items: int) -> None:
        """As the SDK does in one turn."""
        name = f"{key}:{number}"
        with transaction.atomic():
            run_sql(f"INSERT INTO agent_sessions (session_id) VALUES ('{name}') ON CONFLICT DO NOTHING")
            run_sql(
                "INSERT INTO agent_messages (session_id, message_data)"
                f" SELECT '{name}', '{{}}' FROM generate_series(1, {items})"
            )

    def items(self, key: str, number: int) -> int:
        return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id = '{key}:{number}'"))

    def record(self, number: int) -> SessionRecord | None:
        return SessionRecord.objects.filter(session_id=f"{self.key}:{number}").first()

    # --- what happens -------------------------------------------------------------------------------------------------

    @rule(number=some.integers(0, SESSIONS - 1), items=some.integers(1, 15))
    def an_agent_writes(self, number: int, items: int) -> None:
        try:
            self.insert(self.key, number, items)
        except DatabaseError as problem:
            sqlstate = getattr(problem.__cause__, "sqlstate", "")
        else:
            sqlstate = ""
        assert sqlstate == ("P0E01" if self.is_started else ""), "an agent writes until the fence, and not after it"
        if not sqlstate:
            self.written[number] += items
            for held in self.kept:
                if held in (number, "subject"):
                    self.kept[held] += items

    @precondition(lambda self: not self.is_started)
    @rule(is_approved=some.booleans())
    def something_is_learned(self, is_approved: bool) -> None:
        learn: Any = approved_memory if is_approved else proposed
        learn(f"likes tea {next(numbers)}", subject=self.subject)
        self.memories += 1

    @precondition(lambda self: "subject" not in self.holds)
    @rule()
    def the_subject_is_held(self) -> None:
        self.holds["subject"] = make_hold(self.subject, by=self.officer)
        self.kept["subject"] = self.all_items()

    @rule(number=some.integers(0, SESSIONS - 1))
    def a_session_is_held(self, number: int) -> None:
        record = self.record(number)
        if record is not None and number not in self.holds:
            self.holds[number] = make_hold(record, by=self.officer)
            self.kept[number] = self.items(self.key, number)

    @precondition(lambda self: self.holds)
    @rule(data=some.data())
    def a_hold_is_released(self, data: Any) -> None:
        covers = data.draw(some.sampled_from(sorted(self.holds, key=str)))
        released(self.holds.pop(covers), by=self.officer, second=self.second)
        del self.kept[covers]

    @precondition(lambda self: self.request is None and "subject" not in self.holds)
    @rule()
    def the_person_asks_to_be_erased(self) -> None:
        self.request = approved(self.subject, by=self.officer, second=self.second)

    @precondition(lambda self: self.request is not None)
    @rule(crash=some.integers(0, 12))
    def a_worker_works(self, crash: int) -> None:
        request = self.case
        assert request.run is not None
        with crashing_at(crash):
            run = work_off(request)
        if run.state == Run.State.STOPPED:
            assert "subject" in self.holds
        if request.state == State.SCANNING and run.state == Run.State.WAITING and not run.attempts:
            for number in range(SESSIONS):
                assert self.items(self.key, number) == 0 or number in self.ever_held
            assert not Memory.objects.filter(subject=self.subject).exists()

    @precondition(lambda self: self.request is not None and self.case.run.state != Run.State.COMPLETE)
    @rule()
    def an_officer_lets_it_go_on(self) -> None:
        run = self.case.run
        assert run is not None
        run.refresh_from_db()
        if run.state in (Run.State.STOPPED, Run.State.FAILED):
            resume_run(run, by=self.officer)
        elif self.case.state != State.SCANNING:
            Run.objects.filter(pk=run.pk).update(attempts=0)
            retry(run)

    # --- what is always so --------------------------------------------------------------------------------------------

    @property
    def case(self) -> SubjectRequest:
        assert self.request is not None
        self.request.refresh_from_db()
        return self.request

    @property
    def is_started(self) -> bool:
        return self.request is not None and self.case.is_started

    @property
    def ever_held(self) -> set[int]:
        records = dict(
            SessionRecord.objects.filter(subject=self.subject, session_id__startswith=f"{self.key}:").values_list(
                "pk", "session_id"
            )
        )
        held = LegalHold.objects.filter(record_id__in=records).values_list("record_id", flat=True)
        return {int(records[pk].rpartition(":")[2]) for pk in held}

    def all_items(self) -> int:
        return sum(self.items(self.key, number) for number in range(SESSIONS))

    @invariant()
    def what_is_held_stays(self) -> None:
        for covers, kept in self.kept.items():
            there = self.all_items() if covers == "subject" else self.items(self.key, int(covers))
            assert there == kept, f"{covers} is held"

    @invariant()
    def what_went_was_counted(self) -> None:
        erased = 0
        if self.request is not None:
            step = ErasureStep.objects.filter(request=self.request, name="sessions").first()
            erased = step.erased if step else 0
        assert erased == sum(self.written.values()) - self.all_items()

    @invariant()
    def nothing_goes_before_the_request_says_so(self) -> None:
        if not self.is_started:
            assert self.all_items() == sum(self.written.values())
            assert Memory.objects.filter(subject=self.subject).count() == 1 + self.memories

    @invariant()
    def nobody_else_loses_anything(self) -> None:
        assert [self.items(self.other_key, number) for number in range(SESSIONS)] == [FIRST] * SESSIONS
        assert Memory.objects.filter(subject=self.other).count() == 1
        assert SessionRecord.objects.filter(subject=self.other, erased_at=None).count() == SESSIONS


def test_whatever_happens_in_any_order(agent_tables: None, small_chunks: None) -> None:
    attach_main_store()
    AnyOrder.officer, AnyOrder.second = person("compliance"), person("compliance", "reviewer")
    run_state_machine_as_test(
        AnyOrder,
        settings=effort(
            max_examples=EXAMPLES, stateful_step_count=14, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
