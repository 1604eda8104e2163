"""An installation for faults: a server of its own, `serve` as a program before it, and somebody who reads there."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.core.management import call_command

from memadmin.audit.transparency import verifier
from memadmin.embedded import cluster
from memadmin.embedded.server import EmbeddedServer
from tests.forks import PROCESSES, use_database
from tests.ports import free_port
from tests.processes import kill_with_children
from tests.waiting import PATIENCE_SECONDS, wait_until

SECRET = "the heron lands at seven"


@dataclass
class Answer:
    status: int
    text: str

    @property
    def shows_content(self) -> bool:
        return SECRET in self.text


class Site:
    """The server that it was made with may be stopped and killed. Pages reach it through the folder of a socket."""

    def __init__(self, server: EmbeddedServer, cookie: str, pages: list[str]) -> None:
        self.server, self.cookie, self.pages = server, cookie, pages
        self.port = free_port()

    @contextmanager
    def serving(self, data_dir: Path, *, socket_dir: Path | None = None, **environment: str) -> Iterator[Site]:
        """One process of the web server, as in production."""
        ours = ("MEMADMIN_", "DATABASE_URL")
        host = socket_dir or self.server.ensure_running().socket_dir
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve", "--port", str(self.port), "--workers", "1"],
            cwd=settings.CHECKOUT_DIR,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
                "DJANGO_SETTINGS_MODULE": "memadmin.settings",
                "DATABASE_URL": f"postgres://postgres@/memadmin?host={host}&port={cluster.PORT}",
                "MEMADMIN_DATA_DIR": str(data_dir),
                "MEMADMIN_SECRET_KEY": settings.SECRET_KEY,
                "MEMADMIN_PURPOSE": "optional",
                "MEMADMIN_SECOND_FACTOR": "optional",
                "MEMADMIN_CONNECT_TIMEOUT_SECONDS": "2",
                # It reads the same page more often than anybody does.
                "MEMADMIN_READ_LIMIT": "100000",
                "MEMADMIN_READ_NOTICE": "100000",
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(data_dir / "serve.log").open("wb"),
        )
        try:
            wait_until(lambda: self.get("/healthz").status == 200, "the web server answers")
            yield self
        finally:
            kill_with_children(process.pid)
            process.wait()

    def get(self, path: str) -> Answer:
        """With status 0 where the web server itself does not answer."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Cookie": self.cookie})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                return Answer(answer.status, answer.read().decode())
        except urllib.error.HTTPError as refused:
            return Answer(refused.code, refused.read().decode())
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return Answer(0, "")

    def read(self) -> Answer:
        """The session's page."""
        return self.get(self.pages[0])

    def wait_until_it_shows_content(self) -> None:
        wait_until(lambda: self.read().shows_content, "pages are back")

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection[Any]:
        """As the database's administrator."""
        host = self.server.ensure_running().socket_dir
        return psycopg.connect(host=host, user="postgres", dbname="memadmin", autocommit=autocommit)

    def findings_in_the_log(self) -> list[Any]:
        """What the verifier finds once each event has its place."""
        process = PROCESSES.Process(target=sequence, args=(self.server.data_dir,))
        process.start()
        process.join()
        assert process.exitcode == 0
        return list(verifier.verify_database(lambda: self.connect(autocommit=False)).findings)

    def reads_in_the_log(self) -> int:
        with self.connect() as connection:
            row = connection.execute("SELECT count(*) FROM audit_event WHERE type = 'session.viewed'").fetchone()
        assert row
        return int(row[0])


def sequence(data_dir: Path) -> None:
    """In a process of its own."""
    use_database("memadmin", data_dir)
    call_command("sequence_audit", "--once", stdout=StringIO())


def make_site(server: EmbeddedServer) -> Site:
    """On a server with all tables; one session is written, and support staff is signed in."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=prepare, args=(theirs, server.data_dir))
    process.start()
    theirs.close()
    cookie, pages = ours.recv()
    process.join()
    return Site(server, cookie, pages)


def prepare(test: Connection, data_dir: Path) -> None:
    """In a process of its own, whose database this is."""
    use_database("memadmin", data_dir)
    from sessions_app.models import SessionRecord
    from tests.agents import add_items, agent_process, attach_main_store
    from tests.people import person, signed_in

    attach_main_store()
    add_items("chat-heron", SECRET, SECRET)
    cookies = signed_in(person("support")).cookies
    test.send(
        (
            "; ".join(f"{name}={cookie.value}" for name, cookie in cookies.items()),
            [SessionRecord.objects.get().get_absolute_url()],
        )
    )
    agent_process.end()
