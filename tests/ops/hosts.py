"""Web servers and workers as programs, each as on a machine of its own, on the database of the test."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connection

from tests.ports import free_port
from tests.processes import kill_with_children
from tests.waiting import PATIENCE_SECONDS, wait_until

SHARED = "access-copies"
"""The one folder of the data folder that all machines share."""


@dataclass
class Machine:
    """A machine: its data folder, and the program that runs on it."""

    folder: Path
    program: subprocess.Popen[str]
    port: int = 0

    def kill(self) -> None:
        if self.program.poll() is None:
            kill_with_children(self.program.pid)
            self.program.wait()


@contextmanager
def machines(parent: Path, *, web: int = 0, workers: int = 0, **variables: str) -> Iterator[list[Machine]]:
    """Web servers, then workers, all running. Their data folders have nothing in common but copies for requests."""
    (parent / "shared").mkdir(exist_ok=True)
    started: list[Machine] = []
    try:
        for number in range(web + workers):
            folder = parent / f"machine-{number}"
            folder.mkdir()
            (folder / SHARED).symlink_to(parent / "shared")
            port = free_port() if number < web else 0
            arguments = ["serve", "--port", str(port), "--workers", "1"] if port else ["worker"]
            with (folder / "log").open("w") as log:
                program = subprocess.Popen(
                    [sys.executable, "manage.py", *arguments],
                    cwd=settings.CHECKOUT_DIR,
                    env=environment(folder, parent, **variables),
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            started.append(Machine(folder, program, port))
        for each in started:
            wait_until_running(each)
        yield started
    finally:
        for each in started:
            each.kill()


def environment(folder: Path, parent: Path, **variables: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "memadmin.settings",
        "MEMADMIN_DATA_DIR": str(folder),
        "DATABASE_URL": address_of(connection.get_connection_params()["host"]),
        "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
        "MEMADMIN_SIGNING_KEY": base64.b64encode(settings.SIGNING_KEY).decode(),
        "MEMADMIN_SUPPRESSION_LEDGER": str(parent / "shared" / "suppressions.jsonl"),
        "MEMADMIN_SECOND_FACTOR": "optional",
        "MEMADMIN_PURPOSE": "optional",
        **variables,
    }


def address_of(socket_dir: str | Path) -> str:
    """Of the test's database, on a server with its socket in this folder."""
    given = connection.get_connection_params()
    # The form of a socket: two slashes, then its folder.
    return f"postgres://{given['user']}@:{given['port']}/{socket_dir}/{given['dbname']}"


def wait_until_running(machine: Machine) -> None:
    log = machine.folder / "log"

    def is_running() -> bool:
        return answers(machine.port) if machine.port else "The worker is running." in log.read_text()

    wait_until(lambda: is_running() or machine.program.poll() is not None, "the program runs")
    assert machine.program.poll() is None, log.read_text()


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def let_in_by_password(user: User) -> User:
    """With their name as the password, in a form that the real settings know."""
    user.password = PBKDF2PasswordHasher().encode(user.username, "salt", iterations=1)
    user.save(update_fields=["password"])
    return user


@dataclass
class Browser:
    """A browser behind a proxy that hands each request to the next machine, and passes over one that is down."""

    ports: list[int]
    # Behind a proxy all machines have one name.
    client: httpx.Client = field(
        default_factory=lambda: httpx.Client(timeout=PATIENCE_SECONDS, headers={"Host": "localhost"})
    )
    asked: list[int] = field(default_factory=list)
    """Of each request the port that answered."""

    def __post_init__(self) -> None:
        self._next = cycle(self.ports)

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        for _ in self.ports:
            port = next(self._next)
            try:
                answer = self.client.request(method, f"http://127.0.0.1:{port}{path}", **more)
            except httpx.ConnectError:
                continue
            self.asked.append(port)
            return answer
        raise AssertionError("no machine answers")

    def get(self, path: str) -> httpx.Response:
        return self.request("GET", path)

    def post(self, path: str, data: dict[str, Any]) -> httpx.Response:
        """With the token that the last page's cookie has, as its forms do."""
        token = self.client.cookies.get("csrftoken") or ""
        return self.request("POST", path, data={**data, "csrfmiddlewaretoken": token})

    def sign_in(self, name: str, password: str) -> httpx.Response:
        self.get("/accounts/login/")
        return self.post("/accounts/login/", {"username": name, "login": name, "password": password})
