"""A PostgreSQL of the test run's own that listens on TCP, asks for passwords there, and knows no TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from memadmin.embedded import cluster
from tests.ports import free_port
from tests.waiting import wait_until

INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda program: int(program.parts[-3]))
"""Programs of the operating system's packages, of each version, the oldest first."""

AGENT, PASSWORD = "agent", "quite/a@secret:word"


@dataclass(frozen=True)
class PostgresServer:
    socket_dir: str
    port: int

    def url(self, host: str = "127.0.0.1", *, password: str = PASSWORD, **query: str) -> URL:
        """For the agents' user. A host that begins with / is the folder of a socket, where nobody needs a password."""
        reach: dict[str, Any] = {"host": host, "port": self.port, "query": query}
        if host.startswith("/"):
            reach = {"query": {"host": host, "port": str(self.port), **query}}
        return URL.create("postgresql+psycopg", AGENT, password, database="agents", **reach)

    def address(self, host: str = "127.0.0.1", **query: str) -> str:
        return self.url(host, **query).render_as_string(hide_password=False)

    def lets_in(self, password: str) -> bool:
        engine = create_engine(self.url(password=password), poolclass=NullPool)
        try:
            engine.connect().close()
        except OperationalError:
            return False
        return True

    def run(self, *statements: str, database: str = "agents") -> None:
        """As its administrator."""
        reach = {"host": self.socket_dir, "port": str(self.port)}
        url = URL.create("postgresql+psycopg", cluster.SUPERUSER, database=database, query=reach)
        engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in statements:
                connection.execute(text(statement))
        engine.dispose()


@contextmanager
def running_postgres(programs: Path | None = None) -> Iterator[PostgresServer]:
    """Some two seconds. `programs` is the folder of another version's programs, of the operating system's packages."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder:
        Path(folder).chmod(0o755)
        data = Path(folder, "data")
        given = {**cluster.SETTINGS, "listen_addresses": "localhost", "port": str(port), "fsync": "off"}
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(cluster, "SETTINGS", given)
            patching.setattr(cluster, "PORT", port)
            if programs:
                patching.setattr(cluster, "_program", lambda name: programs / name)
                patching.setattr(cluster, "LOCALE", ("--locale=C.UTF-8",))
            started = cluster.start(data, Path(folder, "log"))
        server = PostgresServer(started.socket_dir, port)
        try:
            quoted = PASSWORD.replace(":", "\\:")
            server.run(
                f"CREATE ROLE {AGENT} LOGIN PASSWORD '{quoted}'",
                f"CREATE DATABASE agents OWNER {AGENT}",
                database="postgres",
            )
            Path(data, "pg_hba.conf").write_text("local all all trust\nhost all all all scram-sha-256\n")
            server.run("SELECT pg_reload_conf()")
            wait_until(lambda: not server.lets_in("another password"), "it asks for passwords")
            yield server
        finally:
            cluster.stop(data)
