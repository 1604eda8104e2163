"""The bench's own PostgreSQL: an embedded server that is tuned like a modest production server, one database a size."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from memadmin.embedded import cluster
from memadmin.embedded.server import EmbeddedServer, server_for

SEED_VERSION = "1"
"""Raised when the seeding changes, so that older databases are not taken for seeded ones."""

# Durability stays on; only memory is given to the server, as everybody does who has this much data.
TUNING = {
    "shared_buffers": "2GB",
    "effective_cache_size": "12GB",
    "maintenance_work_mem": "512MB",
    "max_wal_size": "2GB",
    "random_page_cost": "1.1",
}


class BenchServer:
    """The server under the bench's data directory, which goes on belonging to this process until it ends."""

    def __init__(self, data_dir: Path, *, is_tuned: bool) -> None:
        self.data_dir = data_dir
        self._server: EmbeddedServer = server_for(data_dir)
        self._server.ensure_running()
        if is_tuned:
            self._tune()

    def address(self) -> dict[str, Any]:
        return {"host": self._server.ensure_running().socket_dir, "port": cluster.PORT, "user": cluster.SUPERUSER}

    def connect(self, database: str = "postgres") -> psycopg.Connection:
        return psycopg.connect(**self.address(), dbname=database, autocommit=True)

    def engine(self, database: str, *, user: str = cluster.SUPERUSER, pool_size: int = 1) -> AsyncEngine:
        """For the agents' SDK."""
        reach = {**self.address(), "user": user, "database": database}
        return create_async_engine("postgresql+asyncpg://", pool_size=pool_size, connect_args=reach)

    def environment(self, database: str) -> dict[str, str]:
        """For a process that runs the console on one of the databases."""
        return {
            **os.environ,
            "DATABASE_URL": "",
            "DJANGO_SETTINGS_MODULE": "tests.benchmarks.settings",
            "MEMADMIN_BENCH_DATABASE": database,
            "MEMADMIN_DATA_DIR": str(self.data_dir),
        }

    def is_seeded(self, database: str, version: str = SEED_VERSION) -> bool:
        with self.connect() as connection:
            row = connection.execute(
                "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = %s", [database]
            ).fetchone()
        return row == (f"seed {version}",)

    def mark_seeded(self, database: str, version: str = SEED_VERSION) -> None:
        with self.connect() as connection:
            connection.execute(
                sql.SQL("COMMENT ON DATABASE {} IS {}").format(sql.Identifier(database), f"seed {version}")
            )

    def create_empty(self, database: str) -> None:
        self.drop(database)
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))

    def create_copy(self, database: str, original: str) -> None:
        self.drop(database)
        with self.connect() as connection:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
                    sql.Identifier(database), sql.Identifier(original)
                )
            )

    def drop(self, database: str) -> None:
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)))

    def restart(self) -> None:
        """For settings that need it. Only where nobody else uses the server."""
        self._server.leave()
        self._server.ensure_running()

    def _tune(self) -> None:
        with self.connect() as connection:
            # One at a time: ALTER SYSTEM refuses to run inside a transaction.
            for name, value in TUNING.items():
                connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), value))
            (is_in_use,) = connection.execute("SELECT current_setting('shared_buffers') = %s", ["2GB"]).fetchone() or (
                False,
            )
        if not is_in_use:
            self.restart()
