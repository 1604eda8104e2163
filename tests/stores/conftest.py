"""Servers that the tests of stores share."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker
from sqlalchemy import URL

from sessions_app.stores.documents.database import own_address
from tests.stores.document_agents import drop_schema
from tests.stores.mariadb import MariaDb, running_mariadb
from tests.stores.postgres import AGENT, PostgresServer, running_postgres
from tests.stores.servers import RedisServer, own_redis

LEAST_MEMORY_BYTES = 256 * 1024 * 1024


@pytest.fixture
def folder_in_memory(tmp_path: Path) -> Iterator[Path]:
    """An empty folder, in memory where the machine has such: SQLite waits for a disk at each commit."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shutil.disk_usage(shared).free < LEAST_MEMORY_BYTES:
        yield tmp_path
        return
    with TemporaryDirectory(prefix="memadmin-", dir=shared) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def shared_postgres_on_tcp() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_on_tcp(shared_postgres_on_tcp: PostgresServer) -> PostgresServer:
    """With no tables of agents in it."""
    shared_postgres_on_tcp.run("DROP SCHEMA public CASCADE", f"CREATE SCHEMA public AUTHORIZATION {AGENT}")
    return shared_postgres_on_tcp


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    with own_redis() as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """An empty Redis."""
    shared_redis.client.flushall()
    return shared_redis


@pytest.fixture(scope="session")
def second_database(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[URL]:
    """Another database of the server that the tests run on."""
    with django_db_blocker.unblock():
        given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password") if given.get(name)}
    name = f"elsewhere_of_{given['dbname']}"
    with closing(psycopg.connect(**reach, dbname="postgres", autocommit=True)) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield URL.create(
            "postgresql+psycopg",
            username=reach["user"],
            password=reach.get("password"),
            database=name,
            query={"host": str(reach["host"]), "port": str(reach["port"])},
        )
        # Another set of tests may have made, and dropped, it anew.
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def schema_elsewhere(second_database: URL) -> Iterator[URL]:
    """That database, for tables of libraries with a schema of their own; they are gone after the tests of a file."""
    drop_schema(second_database)
    yield second_database
    drop_schema(second_database)


@pytest.fixture(scope="module")
def own_schema(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[URL]:
    """The same in the database of the console."""
    with django_db_blocker.unblock():
        url = own_address()
        drop_schema(url)
        yield url
        drop_schema(url)
