"""The connections of a web process, and what becomes of them when the database goes away."""

from __future__ import annotations

from contextlib import suppress
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


@pytest.mark.django_db
def test_a_database_that_is_back_is_found_by_the_next_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it was away, and however long the pool would like to wait before it looks again."""
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 1_000)
    monkeypatch.setattr(Unsteady, "is_away", True)
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
    in_short: Any = {name: value / 50 if "timeout" in name else value for name, value in settings.DATABASE_POOL.items()}
    with ConnectionPool(connection_class=Unsteady, kwargs=reach, open=True, **in_short) as pool:
        for _ in range(3):
            with suppress(PoolTimeout):
                pool.getconn()
        Unsteady.is_away = False
        pool.putconn(pool.getconn(timeout=10))
