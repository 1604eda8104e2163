"""`memadmin worker`, as a program: how it ends, and what it survives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import OperationalError
from procrastinate import App
from procrastinate.contrib.django import app
from procrastinate.exceptions import ConnectorException
from pytest_django import DjangoDbBlocker

from memadmin import environment
from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.runs import engine
from sessions_app.management.commands import worker as worker_command
from tests.audit import events
from tests.processes import kill
from tests.template_database import copy_to
from tests.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture(autouse=True)
def nothing_is_asked_to_stop() -> Iterator[None]:
    """A worker in this process leaves the engine of runs as it is when a process ends."""
    yield
    engine.stopping.clear()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedServer]:
    """A database of its own with all tables: the worker is another process and would not see a test's transaction."""
    server = server_for(tmp_path_factory.mktemp("worker"))
    with django_db_blocker.unblock():
        copy_to(server)
    yield server
    server.leave()


@pytest.fixture
def worker(server: EmbeddedServer) -> Iterator[subprocess.Popen[str]]:
    """A worker that has begun to work."""
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "worker"],
        stdout=subprocess.PIPE,
        text=True,
        **in_a_checkout(server.data_dir),
    )
    assert worker.stdout
    assert worker.stdout.readline() == "The worker is running.\n"
    wait_for_a_job_after(last_job_done(server), server)
    yield worker
    worker.kill()
    worker.wait()


def in_a_checkout(data_dir: Path) -> dict[str, Any]:
    return {
        "cwd": settings.CHECKOUT_DIR,
        "env": {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "MEMADMIN_DATA_DIR": str(data_dir),
            # The one that the copied database knows.
            "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
        },
    }


def last_job_done(server: EmbeddedServer) -> int:
    """When the last periodic job was due whose row is gone, as those of jobs are that succeeded."""
    host = server.ensure_running().socket_dir
    with psycopg.connect(host=host, user="postgres", dbname="memadmin") as connection:
        done = connection.execute(
            "SELECT coalesce(max(defer_timestamp), 0) FROM procrastinate_periodic_defers WHERE job_id IS NULL"
        ).fetchone()
    assert done
    return int(done[0])


def wait_for_a_job_after(last: int, server: EmbeddedServer) -> None:
    """Periodic jobs come every five seconds."""
    wait_until(lambda: last_job_done(server) > last, "the worker does a job")


@pytest.mark.release
def test_it_survives_a_kill_of_the_embedded_server_and_ends_well_when_it_is_asked_to_stop(
    worker: subprocess.Popen[str], server: EmbeddedServer
) -> None:
    wait_for_its_place(insert_event(server), server)
    last = last_job_done(server)
    kill(server.ensure_running().pid)
    wait_for_a_job_after(last, server)
    wait_for_its_place(insert_event(server), server)
    assert worker.poll() is None

    # It signs off, and leaves no event without a place.
    number = insert_event(server)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(PATIENCE_SECONDS) == 0
    host = server.ensure_running().socket_dir
    with psycopg.connect(host=host, user="postgres", dbname="memadmin") as connection:
        assert connection.execute("SELECT count(*) FROM procrastinate_workers").fetchone() == (0,)
    assert has_a_place(number, server)


def wait_for_its_place(number: int, server: EmbeddedServer) -> None:
    wait_until(lambda: has_a_place(number, server), "the worker sequences the event")


def insert_event(server: EmbeddedServer) -> int:
    with psycopg.connect(host=server.ensure_running().socket_dir, user="postgres", dbname="memadmin") as connection:
        return events.insert_event(connection)


def has_a_place(number: int, server: EmbeddedServer) -> bool:
    with psycopg.connect(host=server.ensure_running().socket_dir, user="postgres", dbname="memadmin") as connection:
        leaf = "SELECT FROM audit_leaf WHERE event_number = %s"
        return connection.execute(leaf, [number]).fetchone() is not None


@pytest.mark.django_db(transaction=True)
def test_without_its_sequencer_a_worker_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memadmin.audit.transparency.sequencer.Sequencer.run", lambda self, stop: None)
    monkeypatch.setattr(worker_command, "PAUSES_SECONDS", (0,))
    with pytest.raises(CommandError, match="stopped unexpectedly"):
        call_command("worker")


@pytest.mark.django_db(transaction=True)
def test_ending_without_being_asked_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """As procrastinate ends after its listener could not connect again: without an error, as if all were well."""

    async def return_at_once(app: App, **options: Any) -> None:
        return None

    monkeypatch.setattr(App, "run_worker_async", return_at_once)
    monkeypatch.setattr(worker_command, "PAUSES_SECONDS", (0, 0))
    with pytest.raises(CommandError, match="stopped unexpectedly"):
        call_command("worker")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("loss", "asked"),
    [
        (None, signal.SIGTERM),
        (ConnectorException("no connection"), signal.SIGINT),
        (OperationalError("not yet"), signal.SIGTERM),
    ],
)
def test_it_begins_anew_after_losing_its_database_and_ends_when_it_is_asked_to_stop(
    monkeypatch: pytest.MonkeyPatch, loss: Exception | None, asked: signal.Signals
) -> None:
    beginnings = []

    async def lose_it_once(app: App, **options: Any) -> None:
        beginnings.append(loss)
        if len(beginnings) == 1:
            if loss:
                raise loss
            return
        signal.raise_signal(asked)
        await asyncio.Event().wait()

    monkeypatch.setattr(App, "run_worker_async", lose_it_once)
    monkeypatch.setattr(worker_command, "PAUSES_SECONDS", (0,))
    call_command("worker")
    assert len(beginnings) == 2


@pytest.mark.parametrize("url", ["", "postgres://worker:secret@direct:5432/console"])
def test_it_goes_round_a_pooler_only_where_told_to(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = {"NAME": "usual", "OPTIONS": {"application_name": "usual"}}
    reached: list[dict[str, Any]] = []

    class Connections(dict[str, Any]):
        settings: ClassVar = {"default": usual}

        def __getitem__(self, alias: str) -> Any:
            reached.append(dict(usual))
            raise CommandError("far enough")

    monkeypatch.setenv("WAY_ROUND", url)
    monkeypatch.setattr(settings, "WORKER_DATABASE", environment.database("WAY_ROUND"))
    monkeypatch.setattr("sessions_app.management.commands.worker.connections", Connections())
    with pytest.raises(CommandError, match="far enough"):
        call_command("worker")
    assert [each["NAME"] for each in reached] == ["console" if url else "usual"]


@pytest.mark.django_db
def test_it_does_not_start_on_a_database_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memadmin.web.health.last_migrations", lambda: {("sessions_app", "9999_from_the_future")})
    with pytest.raises(CommandError, match=r"Migrations are missing \(sessions_app.9999_from_the_future\)"):
        call_command("worker")


@pytest.mark.parametrize("name", ["find_subjects", "inspect_sessions"])
def test_new_sessions_are_looked_through_every_five_seconds(name: str) -> None:
    """In procrastinate's schedules the seconds come last; first they would mean minutes."""
    times = app.periodic_registry.periodic_tasks[f"sessions_app.jobs.{name}", ""].croniter
    first = times.get_next(float)
    assert [times.get_next(float) - first for _ in range(3)] == [5, 10, 15]
