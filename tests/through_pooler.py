"""A plugin of pytest, for a run whose `DATABASE_URL` is a transaction pooler: agents connect as behind one.

docs/install.md names the two arguments of their engine, without which asyncpg prepares statements that the next
server connection does not know.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from django.db import connection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine


def pytest_configure(config: pytest.Config) -> None:
    from sessions_app.stores.sqlalchemy import engine  # plugins are loaded before the settings

    def without_statement_caches(url: str, *, connect_args: dict[str, Any], **given: Any) -> AsyncEngine:
        connect_args |= {"statement_cache_size": 0, "prepared_statement_cache_size": 0}
        return create_async_engine(url, connect_args=connect_args, **given)

    setattr(engine, "create_async_engine", without_statement_caches)  # noqa: B010  # which it imports from elsewhere


@pytest.fixture(autouse=True, scope="module")
def sessions_of_new_roles() -> None:
    """The pooler's sessions are of the roles that the file before has taken away, which are made anew for this one."""
    given = connection.settings_dict
    reach = {"host": given["HOST"] or given["OPTIONS"]["host"], "port": given["PORT"] or given["OPTIONS"]["port"]}
    with psycopg.connect(**reach, user=given["USER"], dbname="pgbouncer", autocommit=True) as administration:
        administration.execute("RECONNECT")
