"""Tables of SQLAlchemySession in other databases: the contract of all stores, and what is special about each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL

from tests.stores.contract import StoreContract
from tests.stores.mariadb import MariaDb
from tests.stores.remote_agents import MariaDbAgent, PostgresAgent, SqliteByUrlAgent
from tests.stores.sealed_contract import SealedContract

pytestmark = pytest.mark.slow


@pytest.mark.release
class TestOtherPostgres(StoreContract, SealedContract):
    @pytest.fixture
    def agent(self, db: None, second_database: URL) -> Iterator[PostgresAgent]:
        agent = PostgresAgent(second_database)
        yield agent
        agent.close()


class TestMariaDb(StoreContract, SealedContract):
    @pytest.fixture
    def agent(self, db: None, mariadb: MariaDb) -> Iterator[MariaDbAgent]:
        agent = MariaDbAgent(mariadb)
        yield agent
        agent.close()


@pytest.mark.release
class TestSqliteByUrl(StoreContract, SealedContract):
    @pytest.fixture
    def agent(self, db: None, folder_in_memory: Path) -> Iterator[SqliteByUrlAgent]:
        agent = SqliteByUrlAgent(folder_in_memory)
        yield agent
        agent.close()
