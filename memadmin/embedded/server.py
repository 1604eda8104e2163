"""Shares one embedded server between all processes that use a data directory.

Each of them holds a shared lock on one file for as long as it lives; the kernel releases it however the process
ends. A process that leaves and finds no other holder stops the server. After a `kill -9` of the very last one the
server goes on running, for the next process to find and, in its turn, to stop.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import psycopg
from psycopg import sql

from memadmin.embedded import cluster
from memadmin.embedded.cluster import SUPERUSER, CannotStart, Postmaster


class EmbeddedServer:
    """The server of one data directory, as this process sees it. Get it from `server_for`."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.cluster = data_dir / "postgres"
        self._lease: int | None = None
        self._running: Postmaster | None = None
        self._databases: set[str] = set()
        self._one_thread = threading.RLock()

    def ensure_running(self) -> Postmaster:
        """The running server, started if it was not. Cheap when it is already known to run.

        Raises CannotStart with a whole sentence.
        """
        with self._one_thread:
            if self._running is None or not self._serves(self._running):
                try:
                    self._running = self._join()
                except CannotStart as problem:
                    raise CannotStart(
                        f"The embedded PostgreSQL in {self.data_dir} cannot be used: {problem}."
                    ) from None
                except OSError as problem:
                    raise CannotStart(
                        f"The embedded PostgreSQL cannot use {problem.filename or self.data_dir}: {problem.strerror}."
                    ) from problem
            return self._running

    def ensure_database(self, name: str) -> None:
        """Creates a database unless it is there; asks the server once per process and name."""
        with self._one_thread:
            if name in self._databases:
                return
            running = self.ensure_running()
            with psycopg.connect(
                host=running.socket_dir, port=cluster.PORT, user=SUPERUSER, dbname="postgres", autocommit=True
            ) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                    # Another process may be as quick.
                    with contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
                        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            self._databases.add(name)

    def leave(self) -> None:
        """Gives up this process's use of the server, and stops it unless another process uses it."""
        with self._one_thread:
            if self._lease is None:
                return
            try:
                # Not atomic: another process may come in between releasing and locking exclusively, and then keeps it.
                fcntl.flock(self._lease, fcntl.LOCK_EX | fcntl.LOCK_NB)
                cluster.stop(self.cluster)
            except BlockingIOError:
                pass
            finally:
                self.forget()

    def forget(self) -> None:
        """Starts from nothing at the next use; the server itself is left alone."""
        if self._lease is not None:
            os.close(self._lease)
        self._lease = self._running = None
        self._databases.clear()

    def _serves(self, running: Postmaster) -> bool:
        found = cluster.find_running(self.cluster)
        return found is not None and found.pid == running.pid and found.state != "stopping"

    def _join(self) -> Postmaster:
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self._databases.clear()
        if self._lease is None:
            self._lease = self._open_lock_file("postgres.users")
            fcntl.flock(self._lease, fcntl.LOCK_SH)
        with self._only_one_starts():
            found = cluster.find_running(self.cluster)
            if found and found.is_ready:
                return found
            return cluster.start(self.cluster, self.data_dir / "postgres.log")

    @contextlib.contextmanager
    def _only_one_starts(self) -> Iterator[None]:
        handle = self._open_lock_file("postgres.start")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _open_lock_file(self, name: str) -> int:
        return os.open(self.data_dir / name, os.O_RDWR | os.O_CREAT, 0o600)


_servers: dict[Path, EmbeddedServer] = {}


def server_for(data_dir: Path | str) -> EmbeddedServer:
    """This process's one EmbeddedServer for a data directory."""
    resolved = _resolved(data_dir)
    return _servers.setdefault(resolved, EmbeddedServer(resolved))


@cache  # asked for by every connection
def _resolved(data_dir: Path | str) -> Path:
    return Path(data_dir).expanduser().resolve()


@atexit.register
def _leave_all() -> None:
    for server in _servers.values():
        server.leave()


def _start_over_in_child() -> None:
    # A forked child shares its parent's lock, so neither would notice the other when it leaves. It takes its own.
    for server in _servers.values():
        server.forget()
    _servers.clear()


os.register_at_fork(after_in_child=_start_over_in_child)
