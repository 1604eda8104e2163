"""The engine of runs across processes: killed, frozen and woken up, two at once, and without its database."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from pytest_django import DjangoDbBlocker

from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.runs import services
from memadmin.runs.engine import carry_on, take
from memadmin.runs.models import Run
from tests.forks import PROCESSES
from tests.meanwhile import somebody_else, wait_until_blocked
from tests.people import person
from tests.processes import kill, kill_with_children
from tests.runs import moving, program
from tests.runs.conftest import ROWS, let_the_lease_expire
from tests.runs.moving import count_done
from tests.template_database import copy_to
from tests.waiting import wait_until

State = Run.State


class Program:
    """A worker in a process of its own, which stands at the place that it came to last."""

    def __init__(self, database: str, run_id: int, *variants: str, data_dir: Path = settings.DATA_DIR) -> None:
        self.places, theirs = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=program.main, args=(theirs, database, data_dir, run_id, variants))
        self.process.start()
        assert self.process.pid
        self.pid = self.process.pid
        theirs.close()

    def comes_to(self, place: str, *, from_there: bool = True) -> None:
        """Lets it go on until it comes to a place."""
        while (reached := self.next_place(goes_on=from_there)) != place:
            assert reached, f"it ended without a word, before it came to {place}"
            assert not reached.startswith("end"), f"it ended with {reached}, and never came to {place}"
            from_there = True

    def goes_on(self) -> None:
        self.places.send(None)

    def next_place(self, *, goes_on: bool = True) -> str:
        if goes_on:
            self.goes_on()
        try:
            return str(self.places.recv())
        except EOFError:
            return ""

    def runs_to_its_end(self) -> str:
        while not (place := self.next_place()).startswith("end"):
            assert place, "it ended without a word"
        return place.removeprefix("end ")

    def send(self, signal_number: signal.Signals) -> None:
        os.kill(self.pid, signal_number)

    def end(self) -> None:
        """Ends it wherever it is, also where it is stopped."""
        self.process.kill()
        self.process.join()


@pytest.fixture
def start() -> Iterator[Callable[..., Program]]:
    """Starts programs, which end with the test."""
    started = list[Program]()

    def start(run: Run, place: str, *variants: str) -> Program:
        worker = Program(connection.settings_dict["NAME"], run.pk, *variants)
        started.append(worker)
        worker.comes_to(place, from_there=False)
        return worker

    yield start
    for worker in started:
        worker.end()


def wait_until_it_can_be_taken(run: Run) -> None:
    """PostgreSQL has noticed that the process of the transaction is gone, or has ended it."""
    wait_until(lambda: can_be_taken(run), "its row is free")


def can_be_taken(run: Run) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM runs_run WHERE number = %s FOR UPDATE SKIP LOCKED", [run.pk])
        return cursor.fetchone() is not None


@pytest.mark.parametrize(("chunks", "place"), [(0, "begin"), (1, "locked"), (1, "written")])
def test_killed_anywhere_it_is_finished_by_another(
    committed_run: Run, start: Callable[..., Program], chunks: int, place: str
) -> None:
    run = committed_run
    worker = start(run, "begin")
    for _ in range(chunks):
        worker.comes_to("written")
    if place != "begin":
        worker.comes_to(place)
    kill(worker.pid)
    wait_until_it_can_be_taken(run)
    assert take(run.pk) is None, "its lease still holds"
    let_the_lease_expire(run)
    carry_on(run)
    assert (run.state, run.done, run.counters) == (State.COMPLETE, ROWS, {"odd": 23})
    assert count_done() == (ROWS, ROWS)


def test_frozen_between_chunks_and_replaced_it_writes_nothing_more(
    committed_run: Run, start: Callable[..., Program]
) -> None:
    run = committed_run
    zombie = start(run, "begin")
    zombie.send(signal.SIGSTOP)
    let_the_lease_expire(run)
    successor = start(run, "written")
    zombie.send(signal.SIGCONT)
    # It waits for the chunk of its successor, and then sees another token.
    zombie.goes_on()
    assert successor.runs_to_its_end() == State.COMPLETE
    assert zombie.next_place(goes_on=False).startswith("end")
    run.refresh_from_db()
    assert (run.state, run.done) == (State.COMPLETE, ROWS)
    assert count_done() == (ROWS, ROWS)


def test_without_the_token_it_would_write(committed_run: Run, start: Callable[..., Program]) -> None:
    run = committed_run
    zombie = start(run, "begin", "without_token")
    zombie.send(signal.SIGSTOP)
    let_the_lease_expire(run)
    carry_on(run)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO runs_todo VALUES (1000)")
    zombie.send(signal.SIGCONT)
    zombie.runs_to_its_end()
    assert count_done() == (ROWS + 1, ROWS + 1), "the broken variant is not broken"


@pytest.mark.parametrize("place", [pytest.param("locked", marks=pytest.mark.release), "written"])
def test_frozen_within_a_chunk_it_loses_its_locks_and_the_chunk(
    committed_run: Run, start: Callable[..., Program], place: str
) -> None:
    run = committed_run
    zombie = start(run, place, "short_lease")
    zombie.send(signal.SIGSTOP)
    assert not can_be_taken(run)
    # PostgreSQL ends the transaction of a process that does nothing within it.
    wait_until_it_can_be_taken(run)
    let_the_lease_expire(run)
    carry_on(run)
    zombie.send(signal.SIGCONT)
    assert zombie.runs_to_its_end() == State.COMPLETE
    run.refresh_from_db()
    assert (run.state, run.done, run.attempts) == (State.COMPLETE, ROWS, 0)
    assert count_done() == (ROWS, ROWS)


def test_without_the_limit_it_would_keep_them(committed_run: Run, start: Callable[..., Program]) -> None:
    run = committed_run
    start(run, "written", "short_lease", "without_timeout").send(signal.SIGSTOP)
    with connection.cursor() as cursor:
        # Twice its lease.
        cursor.execute("SELECT pg_sleep(4)")
    assert not can_be_taken(run), "the broken variant is not broken"


def test_two_workers_at_once_share_nothing(committed_run: Run) -> None:
    with somebody_else() as elsewhere:
        while not committed_run.is_finished:
            other = elsewhere(lambda: carry_on(Run.objects.get(pk=committed_run.pk), seconds=0))
            carry_on(committed_run, seconds=0)
            other.result()
            committed_run.refresh_from_db()
    assert (committed_run.state, committed_run.done) == (State.COMPLETE, ROWS)
    assert count_done() == (ROWS, ROWS)


def test_who_pauses_while_a_chunk_takes_long_is_told_so(
    committed_run: Run, start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PATIENCE", "100ms")
    start(committed_run, "locked")
    with pytest.raises(services.ChunkUnderWay, match="Nothing was changed"):
        services.pause_run(committed_run, by=person("compliance"))


def test_a_pause_waits_for_the_chunk_and_comes_before_the_next(
    committed_run: Run, start: Callable[..., Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "PATIENCE", "60s")
    compliance = person("compliance")
    worker = start(committed_run, "written")
    with somebody_else() as elsewhere:
        paused = elsewhere(lambda: services.pause_run(committed_run, by=compliance))
        wait_until_blocked(paused)
        # Not into the next chunk: PostgreSQL may give a row that was updated to either of the two.
        worker.comes_to("between")
        assert paused.result().state == State.PAUSED
    assert worker.runs_to_its_end() == State.PAUSED
    committed_run.refresh_from_db()
    assert committed_run.done == count_done()[0] == 10


@pytest.mark.slow
def test_it_survives_that_postgresql_is_killed_within_a_chunk(
    tmp_path: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    server = server_for(tmp_path)
    with django_db_blocker.unblock():
        copy_to(server)
    with connected(server) as database:
        database.execute(moving.TABLES)
        database.execute("INSERT INTO runs_todo SELECT generate_series(1, %s)", [ROWS])
        database.execute("INSERT INTO runs_run (number, kind) VALUES (1, 'test_moving')")
    started = Program("memadmin", 1, data_dir=tmp_path)
    try:
        started.comes_to("written", from_there=False)
        started.comes_to("written")
        kill_with_children(server.ensure_running().pid)
        assert started.runs_to_its_end() == State.WAITING
        with connected(server) as database:
            row = database.execute("SELECT done, attempts FROM runs_run").fetchone()
            assert row == (10, 1), "the chunk was lost, and the one before was not"
            database.execute("UPDATE runs_run SET retry_at = NULL")
        again = Program("memadmin", 1, data_dir=tmp_path)
        assert again.next_place(goes_on=False) == "begin"
        assert again.runs_to_its_end() == State.COMPLETE
        with connected(server) as database:
            assert database.execute("SELECT count(*), count(DISTINCT id) FROM runs_done").fetchone() == (ROWS, ROWS)
    finally:
        started.end()
        server.leave()


def connected(server: EmbeddedServer) -> psycopg.Connection[Any]:
    host = server.ensure_running().socket_dir
    return psycopg.connect(host=host, user="postgres", dbname="memadmin")
