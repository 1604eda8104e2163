"""What a worker reports to Prometheus: its jobs, its calls to stores and its runs, at a port of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from prometheus_client.parser import text_string_to_metric_families
from psycopg.types.json import Jsonb
from pytest_django import DjangoDbBlocker
from pytest_django.fixtures import Settings

from memadmin.embedded.server import EmbeddedServer, server_for
from memadmin.process_metrics import OF_PROCESS
from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.management.commands import worker as worker_command
from tests.ports import free_port
from tests.runs.conftest import ROWS, run  # noqa: F401
from tests.template_database import copy_to
from tests.waiting import wait_until

TOKEN = "token-of-the-tests-0123456789"


@pytest.fixture
def server(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[EmbeddedServer]:
    """A database with all tables and two stores: an empty folder, and one that is not there."""
    server = server_for(tmp_path / "data")
    with django_db_blocker.unblock():
        copy_to(server)
    (tmp_path / "sessions").mkdir()
    with psycopg.connect(host=server.ensure_running().socket_dir, user="postgres", dbname="memadmin") as connection:
        for name, path in (("quokka", tmp_path / "sessions"), ("gone", tmp_path / "gone")):
            connection.execute(
                "INSERT INTO sessions_app_sessionstore (name, kind, sessions_table, messages_table, options,"
                " writer_timezone, is_sensitive, fence_mode, patterns_version)"
                " VALUES (%s, 'json_file', '', '', %s, 'UTC', false, 'reject', 1)",
                [name, Jsonb({"path": str(path)})],
            )
    yield server
    server.leave()


@pytest.fixture
def address(server: EmbeddedServer, tmp_path: Path) -> Iterator[str]:
    """Where a worker, started as a program, reports its metrics."""
    port = free_port()
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "worker", "--metrics-port", str(port)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=settings.CHECKOUT_DIR,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "MEMADMIN_DATA_DIR": str(server.data_dir),
            "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
            "MEMADMIN_METRICS_TOKEN": TOKEN,
        },
    )
    assert worker.stdout
    assert worker.stdout.readline() == "The worker is running.\n"
    yield f"http://127.0.0.1:{port}"
    worker.kill()
    worker.wait()


def scraped(address: str, token: str = TOKEN, path: str = "/metrics") -> str:
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def refusal(address: str, token: str = TOKEN, path: str = "/metrics") -> int:
    with pytest.raises(urllib.error.HTTPError) as refused:
        scraped(address, token, path)
    return refused.value.code


def value(text: str, name: str, **labels: str) -> float:
    return sum(
        sample.value
        for metric in text_string_to_metric_families(text)
        for sample in metric.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def wait_for(address: str, is_there: Callable[[str], bool]) -> str:
    return wait_until(lambda: text if is_there(text := scraped(address)) else "", "the figures")


@pytest.mark.release
def test_a_worker_reports_its_jobs_and_its_calls_to_stores(address: str) -> None:
    assert refusal(address, token="another") == 401
    assert refusal(address, path="/") == 404
    text = wait_for(
        address,
        lambda text: all(
            (
                value(text, "memadmin_jobs_ended_total", job="drain_outbox", outcome="done"),
                value(text, "memadmin_store_calls_total", kind="json_file", outcome="done"),
                value(text, "memadmin_store_calls_total", kind="json_file", outcome="failed"),
            )
        ),
    )
    assert value(text, "memadmin_job_seconds_count", job="drain_outbox") >= 1
    assert value(text, "memadmin_store_call_seconds_count", kind="json_file") >= 2
    assert value(text, "memadmin_jobs_ended_total", outcome="failed") == 0
    # Pages and figures of the database are those of the web server.
    assert "memadmin_ready" not in text
    # No name of a store.
    assert "quokka" not in text


def counted(name: str, **labels: str) -> float:
    return OF_PROCESS.get_sample_value(name, labels) or 0.0


@pytest.mark.django_db
def test_chunks_rows_and_failed_attempts_of_runs_are_counted(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    def chunks_and_rows() -> tuple[float, float, float]:
        return (
            counted("memadmin_run_chunk_seconds_count", kind=run.kind),
            counted("memadmin_run_rows_total", kind=run.kind),
            counted("memadmin_run_faults_total", kind=run.kind),
        )

    chunks, rows, faults = chunks_and_rows()
    carry_on(run)
    assert run.done == ROWS
    after = chunks_and_rows()
    assert (after[0] > chunks, after[1] - rows, after[2]) == (True, ROWS, faults)


def test_a_failed_attempt_is_counted(db: None, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    before = counted("memadmin_run_faults_total", kind=run.kind)

    def fail(*args: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("memadmin.runs.engine.try_to_work", fail)
    carry_on(run)
    assert run.state == Run.State.WAITING
    assert counted("memadmin_run_faults_total", kind=run.kind) == before + 1


class TestStart:
    @pytest.fixture(autouse=True)
    def nothing_to_do(self, db: None, monkeypatch: pytest.MonkeyPatch) -> None:
        async def end_at_once() -> None:
            return None

        monkeypatch.setattr(worker_command, "work_until_asked_to_stop", end_at_once)

    def test_a_port_that_is_taken_is_a_sentence(self, settings: Settings) -> None:
        settings.METRICS_TOKEN = TOKEN
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(CommandError, match=rf"at 127.0.0.1, port {port}: Address already in use\."):
                call_command("worker", metrics_port=port)

    def test_without_a_token_nothing_is_reported(self, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
        settings.METRICS_TOKEN = ""
        port = free_port()
        call_command("worker", metrics_port=port)
        assert "MEMADMIN_METRICS_TOKEN is not set" in caplog.text
        with pytest.raises(urllib.error.URLError):
            scraped(f"http://127.0.0.1:{port}")
