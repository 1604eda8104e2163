"""`memadmin serve` as whoever starts it meets it: a service manager, and somebody who mistypes an option."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import psutil
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from tests.ports import free_port
from tests.processes import kill, kill_with_children, still_running
from tests.waiting import PATIENCE_SECONDS, wait_until


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def starting_server(port: int, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Two workers, without a database: /healthz needs none."""
    server = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--port", str(port), "--workers", "2"],
        cwd=settings.CHECKOUT_DIR,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "MEMADMIN_DATA_DIR": str(tmp_path),
            "DATABASE_URL": "postgres://nobody:nothing@127.0.0.1:1/nowhere",
            "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    yield server
    if server.poll() is None:
        kill_with_children(server.pid)
        server.wait()
    assert server.stdout
    server.stdout.close()


@pytest.fixture
def server(port: int, starting_server: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
    wait_until_it_answers(port, starting_server)
    return starting_server


def answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False


def wait_until_it_answers(port: int, server: subprocess.Popen[bytes]) -> None:
    wait_until(lambda: answers(port) or server.poll() is not None, "the server answers")
    assert server.poll() is None, "The server has ended."


def workers_of(server: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Without the helper process with which Python follows what its children share."""
    children = still_running(psutil.Process(server.pid).children())
    return [child for child in children if "resource_tracker" not in " ".join(child.cmdline())]


@pytest.mark.release
def test_a_killed_worker_is_replaced_and_a_stop_ends_everything(port: int, server: subprocess.Popen[bytes]) -> None:
    first = workers_of(server)
    assert len(first) == 2
    for worker in first:
        kill(worker.pid)
    wait_until(lambda: len(workers_of(server)) == 2, "both workers are started again")
    wait_until_it_answers(port, server)

    children = workers_of(server)
    server.send_signal(signal.SIGTERM)
    assert server.wait(PATIENCE_SECONDS) == 0
    assert still_running(children) == []


@pytest.mark.release
def test_a_stop_waits_for_no_worker_that_is_still_starting(starting_server: subprocess.Popen[bytes]) -> None:
    wait_until(
        lambda: (
            sum(map(is_loading_the_console, workers_of(starting_server))) == 2 or starting_server.poll() is not None
        ),
        "both workers are started",
    )
    assert starting_server.poll() is None, "The server has ended."
    starting_server.send_signal(signal.SIGTERM)
    said, _ = starting_server.communicate(timeout=PATIENCE_SECONDS)
    assert starting_server.returncode == 0
    assert b"refused to gracefully stop" not in said


def is_loading_the_console(worker: psutil.Process) -> bool:
    """It has come past the beginning of memadmin/wsgi.py."""
    try:
        return any("psycopg" in part.path for part in worker.memory_maps())
    except psutil.NoSuchProcess:
        return False


def test_an_address_in_use_is_named(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail("It was started."))
    in_use = pytest.raises(CommandError, match=f"Cannot listen at 127.0.0.1, port {port}: Address already in use")
    with socket.create_server(("127.0.0.1", port)), in_use:
        call_command("serve", port=port)
    with pytest.raises(CommandError, match="port 70000: a port is a number up to 65535"):
        call_command("serve", port=70_000)


@pytest.mark.parametrize("option", ["--workers=0", "--threads=many", "--recycle-hours=-1"])
def test_numbers_begin_at_one(option: str) -> None:
    with pytest.raises(CommandError, match="is not a whole number from 1"):
        call_command("serve", option)


def test_static_files_that_cannot_be_written_are_named(
    port: int, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *command: pytest.fail("It was started."))
    (tmp_path / "file").write_text("")
    settings.STATIC_ROOT = tmp_path / "file" / "static"
    with pytest.raises(
        CommandError, match=r"The static files cannot be written .* Let MEMADMIN_DATA_DIR name a folder"
    ):
        call_command("serve", port=port)


def test_it_takes_the_place_of_the_command(
    port: int, tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: started.append(command))
    settings.STATIC_ROOT = tmp_path
    printed = StringIO()
    call_command("serve", port=port, workers=3, threads=2, recycle_hours=6, stdout=printed)
    assert printed.getvalue() == f"The web server listens at 127.0.0.1, port {port}, with 3 workers.\n"
    (command,) = started
    options = " ".join(command)
    for option in ("--workers 3", "--blocking-threads 2", "--workers-lifetime 21600", "--workers-kill-timeout 30"):
        assert option in options
