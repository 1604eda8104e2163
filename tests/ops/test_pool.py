"""The connections of a web process, and what becomes of them when the database goes away."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg_pool import ConnectionPool, PoolTimeout
from psycopg_pool.base import AttemptWithBackoff


class Unsteady(psycopg.Connection[Any]):
    is_away = True

    @classmethod
    def connect(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.is_away:
            raise psycopg.OperationalError("away")
        return super().connect(*args, **kwargs)


def is_served(pool: ConnectionPool[Any], within: float | None = None) -> bool:
    try:
        pool.putconn(pool.getconn(timeout=within))
    except PoolTimeout:
        return False
    return True


@pytest.mark.django_db
def test_a_database_that_is_back_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it was away, and however long the pool would like to wait before it looks again.

    By the next request, or by the one after it where that one came just as the pool gave its last attempt up.
    """
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 1_000)
    monkeypatch.setattr(Unsteady, "is_away", True)
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
    in_short: Any = {name: value / 50 if "timeout" in name else value for name, value in settings.DATABASE_POOL.items()}
    with ConnectionPool(connection_class=Unsteady, kwargs=reach, open=True, **in_short) as pool:
        assert not any(is_served(pool) for _ in range(3))
        Unsteady.is_away = False
        assert is_served(pool) or is_served(pool, within=10)
