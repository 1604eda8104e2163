"""Three sequencers as programs, killed at random during writes: nothing may be lost, doubled or out of place.

`MEMADMIN_FAULT_SECONDS=60` makes it last as long as the figure in docs/performance.md.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker

from memadmin.audit.transparency import verifier
from memadmin.embedded.server import EmbeddedServer, server_for
from tests.audit.events import insert_event
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


def on(data_dir: Path) -> dict[str, Any]:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memadmin.settings", "MEMADMIN_DATA_DIR": str(data_dir)}
    return {"cwd": settings.CHECKOUT_DIR, "env": environment}


def connect(server: EmbeddedServer) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=server.ensure_running().socket_dir, user="postgres", dbname="memadmin")


def start(server: EmbeddedServer) -> subprocess.Popen[bytes]:
    started: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "manage.py", "sequence_audit"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        **on(server.data_dir),
    )
    return started


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


def kill_at_random(server: EmbeddedServer, running: list[subprocess.Popen[bytes]]) -> int:
    """Kills one of them now and then, once it works, and starts another; returns how often."""
    chance, kills, began = random.Random(17), 0, time.monotonic()
    while kills < FEWEST_KILLS or time.monotonic() < began + FAULT_SECONDS:
        victim = running.pop(chance.randrange(len(running)))
        assert victim.stdout
        victim.stdout.readline()
        time.sleep(chance.random() * 0.3)
        victim.send_signal(signal.SIGKILL)
        victim.wait()
        victim.stdout.close()
        kills += 1
        running.append(start(server))
    return kills


def test_killed_sequencers_lose_nothing_and_write_nothing_twice(server: EmbeddedServer) -> None:
    done = threading.Event()
    running = [start(server) for _ in range(SEQUENCERS)]
    try:
        with ThreadPoolExecutor(WRITERS) as threads:
            writing = [threads.submit(write, server, seed, done) for seed in range(WRITERS)]
            try:
                kills = kill_at_random(server, running)
            finally:
                done.set()
            committed = sum(each.result() for each in writing)
        for each in running:
            assert each.stdout
            each.stdout.readline()
            each.terminate()
        assert [each.wait(60) for each in running] == [0] * SEQUENCERS
    finally:
        for each in running:
            each.kill()
            each.wait()
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
