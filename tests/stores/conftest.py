"""Servers that the tests of stores share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stores.mariadb import MariaDb, running_mariadb
from tests.stores.servers import RedisServer, own_redis


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDb]:
    with running_mariadb() as server:
        yield server


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[RedisServer]:
    with own_redis() as server:
        yield server


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """An empty Redis."""
    shared_redis.client.flushall()
    return shared_redis
