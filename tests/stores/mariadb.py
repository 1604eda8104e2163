"""A MariaDB of the test run's own: in a temporary folder, reached through a socket there, ended with the run."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, create_engine, text

from tests.stores.servers import without

INSTALL = "mariadb-install-db"
SERVER = "mariadbd"
ASKED_BY_INSTALL = "my_print_defaults"
PROGRAMS = (INSTALL, SERVER, ASKED_BY_INSTALL)
PACKAGES = "mariadb-server-core mariadb-client-core"
START_SECONDS = 300


def tables_by_hand(
    sessions_table: str = "agent_sessions",
    messages_table: str = "agent_messages",
    *,
    text_type: str = "MEDIUMTEXT",
    time_type: str = "TIMESTAMP",
) -> tuple[str, str]:
    """What makes the agents' tables, because the SDK gives its ids no length."""
    return (
        f"""CREATE TABLE {sessions_table} (
            session_id VARCHAR(600) PRIMARY KEY,
            created_at {time_type} NOT NULL DEFAULT CURRENT_TIMESTAMP,
            updated_at {time_type} NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)""",
        f"""CREATE TABLE {messages_table} (
            id BIGINT AUTO_INCREMENT PRIMARY KEY,
            session_id VARCHAR(600) NOT NULL,
            message_data {text_type} NOT NULL,
            created_at {time_type} NOT NULL DEFAULT CURRENT_TIMESTAMP,
            INDEX (session_id, created_at),
            FOREIGN KEY (session_id) REFERENCES {sessions_table} (session_id) ON DELETE CASCADE)""",
    )


class MariaDb:
    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.made: set[str] = set()
        """The databases in it, which are emptied and not made again."""

    def url(self, *, driver: str = "mysql+pymysql", database: str = "", user: str = "root", password: str = "") -> URL:
        return URL.create(
            driver,
            username=user,
            password=password or None,
            host="localhost",
            database=database or None,
            query={"unix_socket": str(self.socket)},
        )

    def run(self, *statements: str, database: str = "") -> list[tuple[Any, ...]]:
        """As its administrator; the rows of the last statement."""
        # Without TLS, for which the certificates of the machine would be read each time.
        given = {"ssl_disabled": True}
        engine = create_engine(self.url(database=database), connect_args=given, isolation_level="AUTOCOMMIT")
        try:
            with engine.connect() as connection:
                for statement in statements:
                    result = connection.execute(text(statement))
                return [tuple(row) for row in result] if result.returns_rows else []
        finally:
            engine.dispose()


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@contextmanager
def running_mariadb() -> Iterator[MariaDb]:
    """Some five seconds. A socket's path is short, so the folder is not pytest's."""
    install, server, _ = (program(name) or without("MariaDB", PACKAGES) for name in PROGRAMS)
    with tempfile.TemporaryDirectory(prefix="mariadb-", ignore_cleanup_errors=True) as folder:
        here = [f"--datadir={folder}/data", *(["--user=root"] if os.geteuid() == 0 else [])]
        ways = {"check": True, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        no_question = ["--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run([install, "--no-defaults", *here, *no_question], **ways)  # type: ignore[call-overload]
        socket = Path(folder, "s")
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    server,
                    "--no-defaults",
                    *here,
                    f"--socket={socket}",
                    f"--pid-file={folder}/pid",
                    "--skip-networking",
                    "--innodb-flush-log-at-trx-commit=0",
                    "--innodb-buffer-pool-size=32M",
                    # Not that of the agents, who are two hours ahead: a store's times have to come out all the same.
                    "--default-time-zone=+02:00",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            mariadb = MariaDb(socket)
            wait_for(mariadb, process, Path(folder, "log"))
            yield mariadb
        finally:
            # Nothing in it is to be kept.
            process.kill()
            process.wait()


def wait_for(mariadb: MariaDb, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            mariadb.run("SELECT 1")
            return
        except Exception:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"MariaDB did not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.05)
