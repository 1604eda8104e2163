"""Agents whose SQLAlchemySession keeps its tables in a database that is not the console's."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agents.extensions.memory import SQLAlchemySession
from sqlalchemy import URL, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from tests.stores.contract import SdkAgent, Trouble, variable_unset, variable_with
from tests.stores.mariadb import MariaDb, tables_by_hand

VARIABLE = "ELSEWHERE_DB_URL"
PASSWORD = "quite/a@secret:word"


class RemoteAgent(SdkAgent):
    """Writes through the SDK's class on an engine of its own, and looks by SQL that is not the console's.

    It keeps its connections until it is closed, as an agent's process does.
    """

    creates_tables: ClassVar[bool] = True
    sessions_table: ClassVar[str] = "agent_sessions"
    messages_table: ClassVar[str] = "agent_messages"
    aged: ClassVar[str]
    keeps_connections: ClassVar[bool] = True
    connect_args: ClassVar[dict[str, Any]] = {}
    """Of the connection that looks."""

    def __init__(self, url: URL, agents_url: URL, **declared: Any) -> None:
        self.url, self.agents_url = url, agents_url
        self.patching = pytest.MonkeyPatch()
        self.patching.setenv(VARIABLE, url.render_as_string(hide_password=False))
        self.has_tables = not self.creates_tables
        self.prepare()
        if not self.has_tables:
            self.read("nobody")
            self.has_tables = True
        self.store = declare_store(
            "elsewhere",
            kind="remote_sql",
            options={"url_env": VARIABLE},
            **{"sessions_table": self.sessions_table, "messages_table": self.messages_table, **declared},
        )
        attach_store(self.store)

    def prepare(self) -> None:
        """Takes away what an earlier test left, and makes tables where the SDK does not."""

    @cached_property
    def loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        return loop

    @cached_property
    def agents_engine(self) -> AsyncEngine:
        return create_async_engine(self.agents_url, **self.pooling())

    @cached_property
    def engine(self) -> Engine:
        return create_engine(self.url, connect_args=self.connect_args, **self.pooling())

    def pooling(self) -> dict[str, Any]:
        return {} if self.keeps_connections else {"poolclass": NullPool}

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        session = SQLAlchemySession(
            session_id,
            engine=self.agents_engine,
            create_tables=not self.has_tables,
            sessions_table=self.sessions_table.rpartition(".")[2],
            messages_table=self.messages_table.rpartition(".")[2],
        )
        method = getattr(self.worn(session), name)
        return asyncio.run_coroutine_threadsafe(method(*arguments), self.loop).result()

    def ask(self, query: str, **parameters: Any) -> list[Any]:
        with self.engine.begin() as connection:
            result = connection.execute(text(query), parameters)
            return list(result) if result.returns_rows else []

    def stored(self, session_id: str) -> list[str]:
        query = f"SELECT session_id, message_data FROM {self.messages_table} ORDER BY created_at, id"
        return [raw for stored_id, raw in self.ask(query) if stored_id == session_id]

    def leftovers(self, words: str) -> list[str]:
        found = []
        for table in (self.messages_table, self.sessions_table):
            if any(words in str(row) for row in self.ask(f"SELECT * FROM {table}")):
                found.append(table)
        return found

    def age(self, session_id: str, by: timedelta) -> None:
        query = f"UPDATE {self.messages_table} SET created_at = {self.aged} WHERE session_id = :session_id"
        self.ask(query, seconds=int(by.total_seconds()), session_id=session_id)

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        reads: list[str] = []

        def noted(connection: object, cursor: object, statement: str, *more: object) -> None:
            if "message_data" in statement:
                reads.append(statement)

        event.listen(Engine, "before_cursor_execute", noted)
        try:
            yield reads
        finally:
            event.remove(Engine, "before_cursor_execute", noted)

    # --- troubles -----------------------------------------------------------------------------------------------------

    def elsewhere(self, value: str, sentence: str) -> AbstractContextManager[str]:
        """Another address in the variable."""
        return variable_with(VARIABLE, value, sentence)

    @contextmanager
    def renamed(self) -> Iterator[str]:
        for table in (self.messages_table, self.sessions_table):
            self.ask(f"ALTER TABLE {table} RENAME TO {table.rpartition('.')[2]}_before")
        try:
            yield f"The tables {self.sessions_table} and {self.messages_table} are not in the database"
        finally:
            for table in (self.messages_table, self.sessions_table):
                self.ask(f"ALTER TABLE {table}_before RENAME TO {table.rpartition('.')[2]}")

    def changed(self, **parts: Any) -> str:
        return self.url.set(**parts).render_as_string(hide_password=False)

    def troubles(self) -> dict[str, Trouble]:
        return {
            "nothing in the variable": lambda: variable_unset(VARIABLE),
            "no address": lambda: self.elsewhere(f"postgres:{PASSWORD}", f"The value of {VARIABLE} is not an address"),
            "port is a password": lambda: self.elsewhere("mysql://me:se@cret:word@h/d", "is not an address"),
            "another database": lambda: self.elsewhere("oracle://me:you@here/d", "No other database is read here"),
            "tables renamed": self.renamed,
        }

    def close(self) -> None:
        # One that never said or asked anything has opened none.
        if "agents_engine" in vars(self):
            asyncio.run_coroutine_threadsafe(self.agents_engine.dispose(), self.loop).result()
            self.loop.call_soon_threadsafe(self.loop.stop)
        if "engine" in vars(self):
            self.engine.dispose()
        self.patching.undo()


class PostgresAgent(RemoteAgent):
    aged = "created_at - CAST(:seconds AS int) * interval '1 second'"

    def __init__(self, url: URL, **declared: Any) -> None:
        super().__init__(url, url.set(drivername="postgresql+asyncpg"), **declared)

    def prepare(self) -> None:
        if self.ask("SELECT FROM pg_tables WHERE tablename = 'agent_messages'"):
            self.ask("TRUNCATE agent_sessions, agent_messages")
            self.has_tables = True

    def troubles(self) -> dict[str, Trouble]:
        def refused(sentence: str, **parts: Any) -> Trouble:
            return lambda: self.elsewhere(self.changed(**parts), sentence)

        tcp = {"host": "127.0.0.1", "port": 1, "query": {}}
        return {
            **super().troubles(),
            "unreachable": refused("No database responds", **tcp),
            "unknown host": refused("No database responds", **{**tcp, "host": "nowhere.invalid"}),
            "no database": refused("no database of that name", database="nowhere"),
            "no user": refused("refuses the user name or the password", username="nobody_at_all"),
            "unknown option": refused("unknown option", query={**self.url.query, "colour": "green"}),
        }


class MariaDbAgent(RemoteAgent):
    """On tables made by hand, because the SDK gives its ids no length. Other tables are in another database."""

    creates_tables = False
    aged = "created_at - INTERVAL :seconds SECOND"
    database = "agents"
    collation = "utf8mb4_bin"
    text_type = "MEDIUMTEXT"
    time_type = "TIMESTAMP"
    # Without TLS, for which the certificates of the machine would be read for each test.
    connect_args: ClassVar[dict[str, Any]] = {"ssl_disabled": True}

    def __init__(self, mariadb: MariaDb, **declared: Any) -> None:
        self.mariadb = mariadb
        url = mariadb.url(database=self.database, user=self.database, password=PASSWORD)
        super().__init__(url, url.set(drivername="mysql+aiomysql"), **declared)

    def prepare(self) -> None:
        if self.database in self.mariadb.made:
            self.mariadb.run(f"DELETE FROM {self.sessions_table}", database=self.database)
            return
        self.mariadb.made.add(self.database)
        quoted = PASSWORD.replace(":", "\\:")
        self.mariadb.run(
            f"DROP DATABASE IF EXISTS {self.database}",
            f"DROP USER IF EXISTS {self.database}@localhost",
            f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4 COLLATE {self.collation}",
            f"CREATE USER {self.database}@localhost IDENTIFIED BY '{quoted}'",
            f"GRANT ALL ON {self.database}.* TO {self.database}@localhost",
        )
        tables = tables_by_hand(
            self.sessions_table, self.messages_table, text_type=self.text_type, time_type=self.time_type
        )
        self.mariadb.run(*tables, database=self.database)

    def troubles(self) -> dict[str, Trouble]:
        def refused(sentence: str, **parts: Any) -> Trouble:
            return lambda: self.elsewhere(self.changed(**parts), sentence)

        query = dict(self.url.query)
        return {
            **super().troubles(),
            "unreachable": refused("No database responds", query={**query, "unix_socket": "/nowhere"}),
            "wrong password": refused("refuses the user name or the password", password="not it"),
            "no database": refused("no database of that name|lacks a right", database="nowhere"),
            "no encryption": refused("asks for an encrypted connection", query={**query, "ssl_ca": certificates()}),
            "no certificates": refused("cannot be read", query={**query, "ssl_ca": "/nowhere.pem"}),
            "unknown option": refused("unknown option", query={**query, "colour": "green"}),
        }


class SqliteByUrlAgent(RemoteAgent):
    # Its file is put aside and comes back, with its log emptied.
    keeps_connections = False
    aged = "datetime(created_at, '-' || :seconds || ' seconds')"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agents.db"
        super().__init__(make_url(f"sqlite:///{self.path}"), make_url(f"sqlite+aiosqlite:///{self.path}"))

    def leftovers(self, words: str) -> list[str]:
        files = sorted(self.path.parent.glob("agents.db*"))
        return [file.name for file in files if words.encode() in file.read_bytes()]

    def troubles(self) -> dict[str, Trouble]:
        return {
            **super().troubles(),
            "no such file": lambda: self.elsewhere("sqlite:////nowhere.db", "There is no file /nowhere.db"),
            "in memory": lambda: self.elsewhere("sqlite://", "contains no absolute file path"),
        }

    @contextmanager
    def renamed(self) -> Iterator[str]:
        aside = self.path.with_name("aside")
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.path.rename(aside)
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute("CREATE TABLE another (id)")
        try:
            yield "are not in the database|does not have the tables"
        finally:
            for file in self.path.parent.glob("agents.db*"):
                file.unlink()
            aside.rename(self.path)


def certificates() -> str:
    import certifi

    return os.fspath(certifi.where())
