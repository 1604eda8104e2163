"""Cases of people of whom there is little: steps without rows share transactions, and are asked after the fence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now

from memadmin.erasure import preview, work
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scope import scope_of
from memadmin.erasure.steps import STEPS, steps_with_rows
from memadmin.erasure.steps.base import RowStep
from memadmin.runs import engine
from memadmin.runs.models import Run
from memories_app.models import Evidence, Recall, Signal
from sessions_app.models import SessionRecord, TextSearch
from tests.agents import attach_main_store
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import erased_of, items_of, with_sessions
from tests.memories.builders import proposed

KEY = "customer-60471-small"
"""In no file of other tests, which a scan reads, too."""


@pytest.fixture
def chunks(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """Erased rows by step, as they are after each transaction of an erasure that has steps."""
    seen, chunk = [], engine.Lease.chunk

    @contextmanager
    def watched(lease: engine.Lease) -> Iterator[Run]:
        with chunk(lease) as run:
            yield run
        if steps := ErasureStep.objects.filter(request__run=lease.run):
            seen.append({step.holder: step.erased for step in steps})

    monkeypatch.setattr(engine.Lease, "chunk", watched)
    # However busy this machine is.
    monkeypatch.setattr(work, "CHUNK_SECONDS", 3_600)
    return seen


def test_a_transaction_changes_rows_of_one_step_and_finishes_those_without(
    agent_tables: None, officer: User, second: User, chunks: list[dict[str, int]]
) -> None:
    attach_main_store()
    subject = with_sessions(KEY, by=officer, sessions=1, items=2)
    Signal.objects.create(subject=subject, kind="preference", text="tea")
    request = approved(subject, by=officer, second=second)
    work_off(request)
    assert (items_of(KEY), Signal.objects.count()) == (0, 0)
    changed = [[holder for holder in after if after[holder] != before[holder]] for before, after in pairwise(chunks)]
    assert max(map(len, changed)) == 1, changed
    assert [holder for each in changed for holder in each] == ["sessions/main", "signals", "identity", "audit_details"]
    assert changed[:4] == [["sessions/main"], ["signals"], ["identity"], ["audit_details"]], "a step without rows"
    assert not ErasureStep.objects.exclude(state=ErasureStep.State.DONE, ended_at__isnull=False).exists()


def test_what_comes_between_the_count_and_the_fence_goes_in_the_first_round(
    officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = make_subject(KEY)
    request = approved(subject, by=officer, second=second)
    count = preview.preview_erasure

    def counted_too_early(*scope: Any) -> Any:
        counted = count(*scope)
        Signal.objects.create(subject=subject, kind="preference", text="tea")
        return counted

    monkeypatch.setattr(work, "preview_erasure", counted_too_early)
    work_off(request)
    assert ErasureStep.objects.get(request=request, name="signals").expected == 0
    assert (Signal.objects.count(), erased_of(request)["signals"]) == (0, 1)
    assert request.state == SubjectRequest.State.SCANNING
    assert [scan["found"] for scan in request.scans] == [0]


def test_what_comes_after_its_step_goes_before_the_scan(
    officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a fence before it: the search of somebody else."""
    request = approved(make_subject(KEY), by=officer, second=second)
    run_steps, rounds = work.run_steps, list[int]()

    def run_steps_beside_a_writer(*arguments: Any) -> None:
        run_steps(*arguments)
        rounds.append(len(rounds))
        if rounds == [0]:
            search_for_the_person(officer)

    monkeypatch.setattr(work, "run_steps", run_steps_beside_a_writer)
    work_off(request)
    assert (TextSearch.objects.count(), erased_of(request)["searches"]) == (0, 1)
    assert [scan["found"] for scan in request.scans] == [0]


def search_for_the_person(by: User) -> None:
    TextSearch.objects.create(text=f"what did {KEY} say", searched_by=by, expires_at=now() + timedelta(days=1))


def test_the_steps_with_rows_are_those_that_count_some(agent_tables: None, officer: User) -> None:
    attach_main_store()
    subject = with_sessions(KEY, by=officer)
    of_rows = [step for step in STEPS if isinstance(step, RowStep)]

    def counting() -> set[str]:
        scope = scope_of(subject)
        with_rows = steps_with_rows(scope)
        assert with_rows >= {step.name for step in STEPS} - {step.name for step in of_rows}
        counting = {step.name for step in of_rows if step.count(scope, "").rows}
        assert with_rows & {step.name for step in of_rows} == counting
        return counting

    assert "signals" not in counting()
    record = SessionRecord.objects.get(session_id=f"{KEY}:0")
    memory, shared = proposed("likes tea", subject=subject), proposed("many like tea")
    for each in (memory, shared):
        Evidence.objects.create(memory=each, record_id=record.pk, session_id=f"{KEY}:0", quote="tea")
    Signal.objects.create(subject=subject, kind="preference", text="tea")
    Recall.objects.create(subject=subject, record_id=record.pk)
    search_for_the_person(officer)
    assert counting() >= {"memories", "shared_memories", "evidence", "versions", "signals", "recalls", "searches"}
