"""Agents in tests: the SDK's own session class, in connections of its own, on the tables of the test database."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar, cast

import psycopg
from agents import TResponseInputItem
from django.db import connection

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.sqlalchemy.engine import AgentTables, open_agent_tables

T = TypeVar("T")


class AgentProcess:
    """Keeps what it opened, as an agent's process does; until `end`, after which it begins anew.

    In a thread of its own, because Playwright keeps an event loop running in the one of the browser tests.
    """

    def __init__(self) -> None:
        self._opened: dict[tuple[tuple[str, Any], ...], AgentTables] = {}

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop

    def run(self, work: Callable[[AgentTables], Awaitable[T]], **tables: Any) -> T:
        async def opened() -> T:
            key = tuple(sorted(tables.items()))
            if key not in self._opened:
                self._opened[key] = open_agent_tables(**tables)
            return await work(self._opened[key])

        return asyncio.run_coroutine_threadsafe(opened(), self._loop).result()

    def end(self) -> None:
        async def close() -> None:
            while self._opened:
                await self._opened.popitem()[1].aclose()

        if self._opened:
            asyncio.run_coroutine_threadsafe(close(), self._loop).result()


agent_process = AgentProcess()


def in_sdk(work: Callable[[AgentTables], Awaitable[T]], **tables: Any) -> T:
    """Runs async work on the agents' tables, opened as an agent opens them; creates them if they are missing."""
    return agent_process.run(work, **tables)


def user(text: str) -> dict[str, Any]:
    return {"content": text, "role": "user"}


def assistant(text: str) -> dict[str, Any]:
    return {"content": text, "role": "assistant"}


def add_items(session_id: str, *items: dict[str, Any] | str, **tables: Any) -> None:
    """One call of the SDK's `add_items`, which is one turn; a string is what a user says."""
    written = cast(Sequence[TResponseInputItem], [user(item) if isinstance(item, str) else item for item in items])
    in_sdk(lambda agent_tables: agent_tables.session(session_id).add_items(list(written)), **tables)


def make_agent_tables() -> None:
    """The main store's tables, as the SDK creates them."""
    in_sdk(lambda agent_tables: agent_tables.session("nobody").get_items())


def attach_main_store(**declared: Any) -> SessionStore:
    """The main store on tables that the SDK created, with registry and fence."""
    make_agent_tables()
    return attached_store(registry.MAIN_STORE, **declared)


def attached_store(name: str, **declared: Any) -> SessionStore:
    """Declared, and attached."""
    store = declare_store(name, **declared)
    attach_store(store)
    return store


def drop_agent_tables() -> None:
    """The agents' tables belong to nobody that Django's flush knows; what stands on them goes too."""
    run_sql('DROP SCHEMA IF EXISTS "Agents" CASCADE')
    run_sql("DROP TABLE IF EXISTS agent_messages, agent_sessions CASCADE")
    run_sql(
        """
        DO $$ DECLARE ours regprocedure; BEGIN
          FOR ours IN
            SELECT oid FROM pg_proc
            WHERE proname ~ '^memadmin_(register|follow|keep_out|note_[a-z]+_of_[a-z]+)_[0-9]+$'
          LOOP
            EXECUTE 'DROP FUNCTION ' || ours || ' CASCADE';
          END LOOP;
        END $$
        """
    )


def run_sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def value_of(query: str) -> Any:
    """The first column of the first row."""
    with connection.cursor() as cursor:
        cursor.execute(query)
        row = cursor.fetchone()
    return row[0] if row else None


def question_in(statements: str) -> str:
    """What a store was asked, without the limits that were sent before it."""
    limit, question = statements.split("; ", 1)
    assert limit.startswith("SET LOCAL lock_timeout"), limit
    return question.split("; ", 1)[1] if question.startswith("SET LOCAL statement_timeout") else question


@contextmanager
def database_role(purpose: str) -> Iterator[str]:
    """A role without any right, gone afterwards with all it was given; for tests with real transactions.

    Roles belong to the whole server, on which another process of the test run makes one for the same purpose.
    """
    name = f"{purpose}_of_{connection.settings_dict['NAME']}"
    run_sql(f"DROP ROLE IF EXISTS {name}; CREATE ROLE {name}")
    try:
        yield name
    finally:
        agent_process.end()
        run_sql(f"RESET ROLE; DROP OWNED BY {name}; DROP ROLE {name}")


@contextmanager
def second_connection(**options: Any) -> Iterator[psycopg.Connection]:
    """Somebody else, in transactions of their own on the same database."""
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password", "dbname") if given.get(name)}
    with psycopg.connect(**reach, **options) as other:
        yield other
        other.rollback()
