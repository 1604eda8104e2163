"""Three sequencers as processes, killed at random during writes: nothing may be lost, doubled or out of place.

`MEMADMIN_FAULT_SECONDS=60` makes it last as long as the figure in docs/performance.md.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from memadmin.audit.transparency import verifier
from memadmin.embedded.server import EmbeddedServer, server_for
from tests.audit.events import insert_event
from tests.forks import PROCESSES, use_database
from tests.template_database import copy_to

SEQUENCERS, WRITERS = 3, 6
FAULT_SECONDS = float(os.environ.get("MEMADMIN_FAULT_SECONDS", "0"))
FEWEST_KILLS = 5

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedServer]:
    server = server_for(tmp_path_factory.mktemp("sequencers"))
    with django_db_blocker.unblock():
        copy_to(server)
    yield server
    server.leave()


def connect(server: EmbeddedServer) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=server.ensure_running().socket_dir, user="postgres", dbname="memadmin")


class Program:
    """A sequencer in a process of its own."""

    def __init__(self, server: EmbeddedServer) -> None:
        self.words, theirs = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=sequence, args=(theirs, server.data_dir))
        self.process.start()
        theirs.close()

    def wait_until_it_works(self) -> None:
        self.words.recv()


def sequence(words: Connection, data_dir: Path) -> None:
    """The command, in the forked process."""
    use_database("memadmin", data_dir)
    call_command("sequence_audit", stdout=SimpleNamespace(write=words.send))


def write(server: EmbeddedServer, seed: int, done: threading.Event) -> int:
    """Commits events, some of them late, and gives some up; returns how many were committed."""
    chance, committed = random.Random(seed), 0
    with connect(server) as connection:
        while not done.is_set():
            count = chance.randint(1, 5)
            for _ in range(count):
                insert_event(connection)
            done.wait(chance.random() * 0.05 if chance.random() < 0.95 else 1)
            if chance.random() < 0.9:
                connection.commit()
                committed += count
            else:
                connection.rollback()
    return committed


def kill_at_random(server: EmbeddedServer, running: list[Program]) -> int:
    """Kills one of them now and then, once it works, and starts another; returns how often."""
    chance, kills, began = random.Random(17), 0, time.monotonic()
    while kills < FEWEST_KILLS or time.monotonic() < began + FAULT_SECONDS:
        victim = running.pop(chance.randrange(len(running)))
        victim.wait_until_it_works()
        time.sleep(chance.random() * 0.3)
        victim.process.kill()
        victim.process.join()
        kills += 1
        running.append(Program(server))
    return kills


def test_killed_sequencers_lose_nothing_and_write_nothing_twice(server: EmbeddedServer) -> None:
    done = threading.Event()
    running = [Program(server) for _ in range(SEQUENCERS)]
    try:
        with ThreadPoolExecutor(WRITERS) as threads:
            writing = [threads.submit(write, server, seed, done) for seed in range(WRITERS)]
            try:
                kills = kill_at_random(server, running)
            finally:
                done.set()
            committed = sum(each.result() for each in writing)
        for each in running:
            each.wait_until_it_works()
            each.process.terminate()
            each.process.join(60)
        assert [each.process.exitcode for each in running] == [0] * SEQUENCERS
    finally:
        for each in running:
            each.process.kill()
            each.process.join()
    with connect(server) as connection:
        told = connection.execute(
            "SELECT (SELECT count(*) FROM audit_event WHERE type = 'test.tried'), (SELECT count(*) FROM audit_event),"
            " (SELECT count(*) FROM audit_leaf), (SELECT count(DISTINCT event_number) FROM audit_leaf),"
            " (SELECT max(index) + 1 FROM audit_leaf), (SELECT count(*) FROM audit_pending)"
        ).fetchone()
    assert told
    tried, events, *leaves, pending = told
    assert tried == committed
    assert leaves == [events] * 3
    assert pending == 0
    report = verifier.verify_database(lambda: connect(server))
    assert report.findings == []
    assert report.size == events
    sys.stdout.write(f"{kills} kills, {committed} events committed, all of them in their places\n")
