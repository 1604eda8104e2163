"""Tables of SQLAlchemySession in other databases: the contract of all stores, and what is special about each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker
from sqlalchemy import URL

from tests.stores.contract import StoreContract
from tests.stores.mariadb import MariaDb
from tests.stores.remote_agents import MariaDbAgent, PostgresAgent, SqliteByUrlAgent


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
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


class TestOtherPostgres(StoreContract):
    @pytest.fixture
    def agent(self, db: None, second_database: URL) -> Iterator[PostgresAgent]:
        agent = PostgresAgent(second_database)
        yield agent
        agent.close()


class TestMariaDb(StoreContract):
    @pytest.fixture
    def agent(self, db: None, mariadb: MariaDb) -> Iterator[MariaDbAgent]:
        agent = MariaDbAgent(mariadb)
        yield agent
        agent.close()


class TestSqliteByUrl(StoreContract):
    @pytest.fixture
    def agent(self, db: None, tmp_path: Path) -> Iterator[SqliteByUrlAgent]:
        agent = SqliteByUrlAgent(tmp_path)
        yield agent
        agent.close()
