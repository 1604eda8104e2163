"""A streaming replica of the test run's server, made with `pg_basebackup`, and Django's connection to it."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection, connections

from memadmin import replica
from memadmin.embedded import cluster
from tests.waiting import PATIENCE_SECONDS, wait_until


@dataclass
class Standby:
    """A hot standby; `run` is as its administrator."""

    socket_dir: Path
    process: subprocess.Popen[bytes]

    def run(self, statement: str) -> Any:
        """The first column of the first row, if there is one."""
        with psycopg.connect(
            host=str(self.socket_dir), port=cluster.PORT, user=cluster.SUPERUSER, dbname="postgres", autocommit=True
        ) as server:
            cursor = server.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within the block it shows what it shows now."""
        self.run("SELECT pg_wal_replay_pause()")
        wait_until(lambda: self.run("SELECT pg_get_wal_replay_pause_state()") == "paused")
        try:
            yield
        finally:
            self.resume()

    def resume(self) -> None:
        self.run("SELECT pg_wal_replay_resume() WHERE pg_is_in_recovery()")

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE_SECONDS)


@contextmanager
def running_standby() -> Iterator[Standby]:
    """Some three seconds, and a copy of everything on the server of the test run."""
    given = connection.get_connection_params()
    keep_what_was_written(given)
    account = cluster._account(Path(given["host"]))
    with tempfile.TemporaryDirectory(prefix="standby-", ignore_cleanup_errors=True) as parent:
        folder, socket_dir = Path(parent, "data"), Path(parent, "socket")
        Path(parent).chmod(0o755)
        for each in (folder, socket_dir):
            each.mkdir(mode=0o700)
            if account:
                os.chown(each, account["user"], account["group"])
        reach = ["--host", given["host"], "--port", str(given["port"]), "--username", cluster.SUPERUSER]
        how = [
            "--write-recovery-conf",
            "--checkpoint=fast",
            "--no-slot",
            "--no-sync",
            "--wal-method=stream",
            "--pgdata",
        ]
        backup: list[str | Path] = [cluster._program("pg_basebackup"), *reach, *how, folder]
        ended = subprocess.run(backup, check=False, cwd=folder, capture_output=True, text=True, **account)
        assert ended.returncode == 0, ended.stderr
        settings = {**cluster.SETTINGS, "unix_socket_directories": socket_dir, "fsync": "off"}
        with Path(parent, "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    cluster._program("postgres"),
                    "-D",
                    folder,
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **account,
            )
        standby = Standby(socket_dir, process)
        try:
            wait_until(lambda: accepts(standby, Path(parent, "log")))
            yield standby
        finally:
            standby.stop()


def keep_what_was_written(given: dict[str, Any]) -> None:
    """The server of the test run keeps what a replica has not read yet, for other tests write at the same time."""
    with psycopg.connect(
        host=given["host"], port=given["port"], user=cluster.SUPERUSER, dbname="postgres", autocommit=True
    ) as server:
        server.execute("ALTER SYSTEM SET wal_keep_size = '1GB'")
        server.execute("SELECT pg_reload_conf()")
        wait_until(lambda: server.execute("SHOW wal_keep_size").fetchone() == ("1GB",))


def accepts(standby: Standby, log: Path) -> bool:
    assert standby.process.poll() is None, log.read_text()
    try:
        return bool(standby.run("SELECT pg_is_in_recovery()"))
    except psycopg.OperationalError:
        return False


@contextmanager
def reading_from(standby: Standby) -> Iterator[None]:
    """Within the block this is the replica of the settings. Tests in it need `databases=["default", "replica"]`."""
    settings = copy.deepcopy(connection.settings_dict)
    settings |= {"ENGINE": "django.db.backends.postgresql", "HOST": str(standby.socket_dir), "USER": cluster.SUPERUSER}
    connections.settings[replica.REPLICA] = settings
    # Nothing is emptied there after a test.
    settings["TEST"]["MIRROR"] = "default"
    try:
        yield
    finally:
        connections[replica.REPLICA].close()
        del connections[replica.REPLICA]
        del connections.settings[replica.REPLICA]
