"""The agents' tables as the SDK's own `SQLAlchemySession` opens them, on the database that Django uses.

Only what has to go through the SDK comes here (demo agents, imports, tests). The console itself reads and erases
through Django's connection, in one transaction with its registry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.extensions.memory import SQLAlchemySession
from agents.memory import SessionSettings
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from sessions_app.stores.sql_text import schema_and_table


@dataclass(frozen=True, slots=True)
class AgentTables:
    """An open engine and the names of the two tables in it; the SDK takes them apart from their schema."""

    engine: AsyncEngine
    sessions_table: str
    messages_table: str

    def session(self, session_id: str, *, limit: int | None = None) -> SQLAlchemySession:
        """The SDK's session. It creates the tables if they are missing, and leaves existing ones as they are.

        `limit` is how many of the newest items the agent reads back before a run; None is all.
        """
        return SQLAlchemySession(
            session_id,
            engine=self.engine,
            create_tables=True,
            sessions_table=self.sessions_table,
            messages_table=self.messages_table,
            session_settings=SessionSettings(limit=limit),
        )

    async def create_missing(self) -> None:
        """Lets the SDK create its tables and its index, unless they are there."""
        await self.session("").get_items(limit=1)

    async def aclose(self) -> None:
        await self.engine.dispose()


def open_agent_tables(
    sessions_table: str = settings.AGENT_SESSIONS_TABLE,
    messages_table: str = settings.AGENT_MESSAGES_TABLE,
    *,
    timezone: str = settings.AGENT_TIMEZONE,
    role: str = "",
    acting_as: Mapping[str, str] | None = None,
) -> AgentTables:
    """The main store's tables; use it as `async with aclosing(open_agent_tables()) as tables`.

    Names are `table` or `schema.table`, both in one schema. `timezone` is the zone in which the agents write: the
    SDK stores CURRENT_TIMESTAMP without one. `role` is whom to connect as, where the server does not ask for a
    password; `acting_as` is the result of `audit.settings_for_triggers`, which names the writer in the log.
    """
    schema, sessions = schema_and_table(sessions_table)
    messages_schema, messages = schema_and_table(messages_table)
    if schema != messages_schema:
        raise ImproperlyConfigured(f"{sessions_table} and {messages_table} must be in one schema for the agents' SDK.")
    engine = create_async_engine(
        "postgresql+asyncpg://",
        connect_args={
            **asyncpg_arguments(),
            **({"user": role} if role else {}),
            "server_settings": {"timezone": timezone, **(acting_as or {})},
        },
        # The SDK has no argument for a schema; a table named "schema.table" would be one with a dot in its name.
        execution_options={"schema_translate_map": {None: schema}} if schema else {},
    )
    return AgentTables(engine, sessions, messages)


def asyncpg_arguments(alias: str = DEFAULT_DB_ALIAS) -> dict[str, Any]:
    """Arguments of `asyncpg.connect` for the database of a Django connection; starts the embedded server.

    As arguments and not as a URL: a password or a socket path then needs no quoting and is in no log line.
    """
    given = connections[alias].get_connection_params()
    names = {
        "host": "host",
        "port": "port",
        "user": "user",
        "password": "password",
        "dbname": "database",
        "sslmode": "ssl",
        "connect_timeout": "timeout",
    }
    return {name: given[psycopg_name] for psycopg_name, name in names.items() if given.get(psycopg_name)}
