"""People to erase, and moments of their erasure at which something else happens."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.conf import settings as ours
from django.contrib.auth.models import User
from django.db import connection

from memadmin.audit.transparency.canonical import utc
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scan import progress, tables
from memadmin.runs import engine
from memadmin.runs.models import Run
from sessions_app.models import SessionRecord, Subject
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, run_sql, value_of
from tests.builders import make_subject
from tests.erasure import stopping
from tests.erasure.builders import work_off
from tests.forks import PROCESSES

ROWS = 10
"""Rows of a chunk in tests with `small_chunks`."""


def with_sessions(key: str, *, by: User, sessions: int = 2, items: int = 25) -> Subject:
    """A person with sessions `key:0`, `key:1` … in the main store."""
    subject = make_subject(key)
    for number in range(sessions):
        add_items(f"{key}:{number}", *(f"item {item} of {key}" for item in range(items)))
    attach_sessions(SessionRecord.objects.filter(session_id__startswith=f"{key}:"), subject, by=by)
    return subject


def items_of(key: str) -> int:
    """Items of a person in the main store."""
    return int(value_of(f"SELECT count(*) FROM agent_messages WHERE session_id LIKE '{key}:%'"))


def add_behind_the_fence(session_id: str, text: str) -> None:
    """Adds an item as a superuser without triggers."""
    run_sql("SET session_replication_role = replica")
    try:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO agent_sessions (session_id) VALUES (%s)", [session_id])
            cursor.execute(
                "INSERT INTO agent_messages (session_id, message_data) VALUES (%s, %s)",
                [session_id, json.dumps({"role": "user", "content": text})],
            )
    finally:
        run_sql("SET session_replication_role = origin")


def erased_of(request: SubjectRequest) -> dict[str, int]:
    """Erased rows by step, as the steps say."""
    return {step.holder: step.erased for step in ErasureStep.objects.filter(request=request)}


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of ROWS rows, however fast this machine is."""
    begin = engine.Lease.__init__

    def begin_small(lease: engine.Lease, run: Run, **named: Any) -> None:
        begin(lease, run, **named)
        lease._rows = ROWS

    monkeypatch.setattr(engine.Lease, "__init__", begin_small)
    monkeypatch.setattr(engine.Lease, "_adapt", lambda lease, took: None)


@pytest.fixture
def after_chunk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], object]], None]:
    """`after_chunk(2, act)` calls `act` once: between the second chunk that changes rows and the next one."""

    def after_chunk(number: int, act: Callable[[], object]) -> None:
        acts, checkpoint = {number: act}, engine.Lease.checkpoint
        passed = iter(range(1, 100_000))

        def act_and_check(lease: engine.Lease) -> None:
            if due := acts.pop(next(passed), None):
                due()
            checkpoint(lease)

        monkeypatch.setattr(engine.Lease, "checkpoint", act_and_check)

    return after_chunk


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a range of each table was read. Each place is stored."""
    monkeypatch.setattr(progress, "SAVE_SECONDS", 0)
    read, counts = tables.TableScan.read, Counter[str]()

    def counting(self: tables.TableScan, start: int, end: int) -> tuple[int, list[tables.Hit]]:
        counts[self.table.place] += 1
        return read(self, start, end)

    monkeypatch.setattr(tables.TableScan, "read", counting)
    return counts


def retry(run: Run) -> None:
    """As if the time until the next attempt were over."""
    Run.objects.filter(pk=run.pk, state=Run.State.WAITING).update(retry_at=None)


def work_to_the_end(request: SubjectRequest) -> Run:
    """Works until the case is closed, as if the day until the second scan were over, and that until a third one."""
    run = work_off(request)
    assert request.state == SubjectRequest.State.SCANNING, run.reason
    for _ in range(2):
        if request.is_closed:
            break
        a_day_later(request)
        run = work_off(request)
    assert request.is_closed, run.reason
    return run


def a_day_later(request: SubjectRequest) -> None:
    for scan in request.scans:
        scan["at"] = utc(datetime.fromisoformat(scan["at"]) - timedelta(days=2))
    SubjectRequest.objects.filter(pk=request.pk).update(scans=request.scans)
    assert request.run is not None
    retry(request.run)


class Worker:
    """A worker in a process of its own that stands before its transaction of this number."""

    def __init__(self, run: Run, number: int, *variants: str) -> None:
        self.places, theirs = PROCESSES.Pipe()
        data_dir = connection.settings_dict.get("DATA_DIR", ours.DATA_DIR)
        args = (theirs, connection.settings_dict["NAME"], data_dir, run.pk, number, variants)
        self.process = PROCESSES.Process(target=stopping.main, args=args)
        self.process.start()
        theirs.close()
        assert self.places.recv() == "here"

    def send(self, signal_number: signal.Signals) -> None:
        assert self.process.pid
        os.kill(self.process.pid, signal_number)

    def goes_on_to_its_end(self) -> None:
        self.places.send("go on")
        assert self.places.recv() == "end"


@pytest.fixture
def start() -> Iterator[Callable[..., Worker]]:
    started: list[Worker] = []

    def start(*given: Any) -> Worker:
        started.append(Worker(*given))
        return started[-1]

    yield start
    for worker in started:
        worker.process.kill()
        worker.process.join()
