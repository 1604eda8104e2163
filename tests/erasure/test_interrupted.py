"""Workers that are frozen and replaced, lose their connection, or are two at once: one erasure, counted once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection

from memadmin.audit.models import AuditEvent
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.runs import engine
from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run
from memories_app.models import Memory, Signal
from sessions_app.models import SessionRecord, SubjectAlias
from tests.agents import attach_main_store, second_connection
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import Worker, erased_of, items_of, retry, with_sessions
from tests.erasure.restoring import dump, on_another_server
from tests.meanwhile import somebody_else
from tests.memories.builders import proposed
from tests.people import person
from tests.processes import kill_with_children
from tests.runs.conftest import let_the_lease_expire

State = SubjectRequest.State


@pytest.fixture
def request_of_ada(agent_tables: None) -> SubjectRequest:
    """An approved erasure of a person of whom there is something in several steps, beside another person."""
    officer, second = person("compliance"), person("compliance", "reviewer")
    attach_main_store()
    subject, other = with_sessions("ada", by=officer), with_sessions("bob", by=officer)
    for each in (subject, other):
        proposed(f"likes tea, {each.pk}", subject=each)
        for number in range(3):
            Signal.objects.create(subject=each, kind="preference", text=f"tea {number}")
    return approved(subject, by=officer, second=second)


def finished_once(request: SubjectRequest) -> None:
    """Nothing of the person is left, all of the other, and everything was counted and said once."""
    request.refresh_from_db()
    assert request.run is not None
    assert request.state == State.SCANNING, request.run.reason
    assert (items_of("ada"), items_of("bob")) == (0, 50)
    assert (Memory.objects.count(), Signal.objects.count()) == (1, 3)
    assert SessionRecord.objects.filter(erased_at=None).count() == 2
    assert not SubjectAlias.objects.filter(subject=request.subject).exists()
    counts = erased_of(request)
    assert (counts["sessions/main"], counts["memories"], counts["signals"], counts["identity"]) == (50, 1, 3, 3)
    codes = list(request.notes.values_list("code", flat=True))
    # Files of tests beside this one are searched, too, and may name an Ada.
    scanned = codes.count(RequestNote.Code.SCANNED) + codes.count(RequestNote.Code.FOUND)
    assert (codes.count(RequestNote.Code.STARTED), scanned) == (1, 1)
    for event in ("request.started", "request.closed"):
        assert AuditEvent.objects.filter(type=event, object_ref=request.id).count() == 1, event
    told = AuditEvent.objects.filter(type="request.rows_erased").values_list("counters__rows", flat=True)
    assert sum(told) == sum(counts.values())


# --- frozen -----------------------------------------------------------------------------------------------------------


def everything(request: SubjectRequest) -> list[Any]:
    """What a worker can change."""
    tables = [SessionRecord, Memory, Signal, SubjectAlias, ErasureStep, SubjectRequest, RequestNote, Run]
    return [
        *(list(model.objects.order_by("pk").values()) for model in tables),  # type: ignore[attr-defined]
        items_of("ada"),
        items_of("bob"),
        AuditEvent.objects.count(),
    ]


def frozen_and_replaced(request: SubjectRequest, zombie: Worker) -> tuple[list[Any], list[Any]]:
    """Everything before the zombie wakes up, and after it has come to its end."""
    assert request.run is not None
    zombie.send(signal.SIGSTOP)
    let_the_lease_expire(request.run)
    work_off(request)
    before = everything(request)
    zombie.send(signal.SIGCONT)
    zombie.goes_on_to_its_end()
    return before, everything(request)


@pytest.mark.parametrize("number", [*(pytest.param(number, marks=pytest.mark.release) for number in (1, 2, 4)), 7])
def test_frozen_and_replaced_it_changes_nothing_more(
    request_of_ada: SubjectRequest, start: Callable[..., Worker], number: int
) -> None:
    """Before it begins, and before transactions of several steps."""
    before, after = frozen_and_replaced(request_of_ada, start(request_of_ada.run, number))
    assert before == after
    finished_once(request_of_ada)


def test_without_the_token_it_would(request_of_ada: SubjectRequest, start: Callable[..., Worker]) -> None:
    zombie = start(request_of_ada.run, 6, "without_token")
    before, after = frozen_and_replaced(request_of_ada, zombie)
    assert before != after, "the broken variant is not broken"


# --- connection -------------------------------------------------------------------------------------------------------


def test_its_connection_is_cut_before_and_after_every_commit(
    request_of_ada: SubjectRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three transactions the first loses its connection before COMMIT, and the second the answer to COMMIT."""
    chunk, numbers, steps = engine.Lease.chunk, count(), ErasureStep.objects.filter(request=request_of_ada)
    cuts = {"before": 0, "after": 0}

    @contextmanager
    def cut(lease: engine.Lease) -> Iterator[Run]:
        # The scan, which only reads, is not what this is about.
        is_erasing = not steps.exists() or steps.exclude(state__in=ErasureStep.FINISHED).exists()
        number = next(numbers) if is_erasing else 2
        with chunk(lease) as run:
            yield run
            if number % 3 == 0:
                cuts["before"] += 1
                terminate(connection.connection.info.backend_pid)
        if number % 3 == 1:
            cuts["after"] += 1
            terminate(connection.connection.info.backend_pid)
            raise OperationalError("the connection was closed before the answer came")

    run = request_of_ada.run
    assert run is not None
    with monkeypatch.context() as patching:
        patching.setattr(engine.Lease, "chunk", cut)
        for _ in range(200):
            run = engine.carry_on(run)
            if run.cursor.get("event"):
                break
            assert (run.state, run.attempts) in ((Run.State.WAITING, 1), (Run.State.WAITING, 2)), run.reason
            retry(run)
    assert min(cuts.values()) >= 4, cuts
    retry(run)
    work_off(request_of_ada)
    finished_once(request_of_ada)


def terminate(pid: int) -> None:
    with second_connection(autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])


@pytest.mark.release
@pytest.mark.parametrize("number", [1, 2, 5])
def test_postgresql_is_killed_within_a_transaction(
    request_of_ada: SubjectRequest, start: Callable[..., Worker], tmp_path: Path, number: int
) -> None:
    """The first one, which begins the erasure, one that deletes items, and one of a later step."""
    with on_another_server(tmp_path, dump()) as server:
        assert items_of("ada") == 50
        worker = start(request_of_ada.run, number, "within")
        connection.close()
        kill_with_children(server.ensure_running().pid)
        worker.goes_on_to_its_end()
        server.ensure_running()
        assert request_of_ada.run is not None
        let_the_lease_expire(request_of_ada.run)
        retry(request_of_ada.run)
        work_off(request_of_ada)
        finished_once(request_of_ada)


# --- two at once ------------------------------------------------------------------------------------------------------


@pytest.mark.release
def test_two_workers_at_once_have_one_effect(request_of_ada: SubjectRequest, small_chunks: None) -> None:
    """Both try as often as they can, and each turn is one transaction long."""
    run = request_of_ada.run
    assert run is not None

    def work_a_while() -> set[int]:
        mine, own = set(), Run.objects.get(pk=run.pk)
        while not own.cursor.get("event"):
            if lease := engine.take(own.pk, seconds=0):
                mine.add(lease.token)
                engine.work(kind_named(own.kind), lease)
            own.refresh_from_db()
            assert own.attempts == 0, own.reason
        return mine

    with somebody_else() as elsewhere:
        other = elsewhere(work_a_while)
        mine = work_a_while()
        theirs = other.result()
    assert not mine & theirs
    assert len(mine) + len(theirs) > 5
    retry(run)
    work_off(request_of_ada)
    finished_once(request_of_ada)
