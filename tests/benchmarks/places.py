"""A place of each kind of store, on servers that end with the measurement, filled with the same sessions.

What the SDK has a class for is written through it, agno's and phidata's through theirs; a folder of JSON has none. Of
thousands of ordinary sessions in tables of the SDK most are copies of rows that its class wrote, which takes minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, Protocol
from uuid import uuid4

import redis.asyncio
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession, RedisSession, SQLAlchemySession
from agno.db.postgres import PostgresDb
from agno.models.message import Message as AgnoMessage
from agno.run.agent import RunOutput
from agno.run.base import RunStatus
from agno.session import AgentSession as AgnoSession
from django.db import connection
from phi.agent.session import AgentSession as PhidataSession
from phi.memory.agent import AgentMemory
from phi.model.message import Message as PhidataMessage
from phi.storage.agent.postgres import PgAgentStorage
from sqlalchemy import URL, create_engine, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.sqlalchemy.engine import open_agent_tables
from tests.benchmarks.processes import say
from tests.stores.mariadb import running_mariadb, tables_by_hand
from tests.stores.servers import RedisServer

ITEMS = 4
"""Of an ordinary session."""
VERY_LONG_TIMES = 10
"""How many times as many items as the long session the very long one has."""
LONG, VERY_LONG = "customer_long:ticket_1", "customer_very_long:ticket_1"
MARIADB_URL, POSTGRES_URL, SQLITE_URL, REDIS_URL = (
    f"BENCH_{name}_URL" for name in ("MARIADB", "POSTGRES", "SQLITE", "REDIS")
)
USER = "customer"
WRITTEN = 200
"""So many ordinary sessions are written before they are copied."""
WORKERS = 2
WHOLE = 10**9
"""So many items at once: what keeps a session as one value would be written anew with each few."""

Message = dict[str, Any]


class Session(Protocol):
    """Of the SDK, or like one."""

    async def add_items(self, items: list[Any]) -> None: ...


class Opened(Protocol):
    def __call__(self, session_id: str) -> Session: ...


@dataclass(frozen=True, slots=True)
class Place:
    opening: AbstractAsyncContextManager[Opened]
    """Gives sessions by their ids."""
    declared: dict[str, Any] = field(default_factory=dict)
    """What the store is told of it."""
    at_once: int = 2_000
    """How many items of a long session are written by one call."""
    tables_at: URL | None = None
    """Where rows of ordinary sessions can be copied: tables of `SQLAlchemySession` or `SQLiteSession`."""


def connected_stores(
    stack: ExitStack, folder: Path, sessions: int, items: int, agents_database: str, only: Sequence[str]
) -> list[SessionStore]:
    """Those with these names, or all, attached, with their sessions on record.

    Servers of other makers end with the stack.
    """
    connected = {
        name: place for name, place in places(stack, folder, agents_database).items() if not only or name in only
    }
    fill_all(connected, sessions, items)
    if "mariadb" in connected:
        spread_times()
    stores = []
    for name, place in connected.items():
        stores.append(declare_store(name, **place.declared))
        attach_store(stores[-1])
    return stores


def fill_all(by_name: Mapping[str, Place], sessions: int, items: int) -> None:
    """By two processes, for most of it is Python's work. Raises RuntimeError."""
    connection.close()
    forking = get_context("fork")
    waiting = forking.SimpleQueue()

    def work() -> None:
        while name := waiting.get():
            began = time.perf_counter()
            asyncio.run(fill(by_name[name], sessions, items))
            say(f"{name}: filled in {time.perf_counter() - began:.0f} s.")

    workers = [forking.Process(target=work) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    for name in [*by_name, *([None] * WORKERS)]:
        waiting.put(name)
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise RuntimeError("A store could not be filled.")


def places(stack: ExitStack, folder: Path, agents_database: str) -> dict[str, Place]:
    """By the name of its store. `agents_database` is another one of the server that the console's is on."""
    postgres = another_database(agents_database)
    mariadb = stack.enter_context(running_mariadb())
    mariadb.run("CREATE DATABASE agents CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    mariadb.run(*tables_by_hand(), database="agents")
    redis_folder, chats = folder / "redis", folder / "chats"
    redis_folder.mkdir()
    chats.mkdir()
    cache = RedisServer(redis_folder)
    stack.callback(cache.process.kill)
    sqlite, by_url, advanced = (folder / f"{name}.db" for name in ("agents", "by-url", "advanced"))
    os.environ[REDIS_URL] = cache.address
    os.environ[MARIADB_URL] = mariadb.url(database="agents").render_as_string(hide_password=False)
    os.environ[POSTGRES_URL] = postgres.render_as_string(hide_password=False)
    os.environ[SQLITE_URL] = f"sqlite:///{by_url}"
    in_mariadb = create_async_engine(mariadb.url(driver="mysql+aiomysql", database="agents"))

    @asynccontextmanager
    async def keys() -> AsyncIterator[Opened]:
        async with redis.asyncio.Redis(unix_socket_path=str(cache.socket)) as client:
            yield lambda session_id: RedisSession(session_id, redis_client=client)

    def remote(variable: str) -> dict[str, Any]:
        return {"kind": "remote_sql", "options": {"url_env": variable}}

    def document(kind: str, table: str) -> dict[str, Any]:
        return {"kind": kind, "options": {"url_env": POSTGRES_URL, "table": table}}

    def at(kind: str, path: Path) -> dict[str, Any]:
        return {"kind": kind, "options": {"path": str(path)}}

    def advanced_session(session_id: str) -> Session:
        return ClosedAfterwards(
            lambda: AdvancedSQLiteSession(session_id=session_id, db_path=advanced, create_tables=True)
        )

    return {
        registry.MAIN_STORE: Place(
            tables(open_agent_tables().engine),
            tables_at=another_database(str(connection.get_connection_params()["dbname"])),
        ),
        "postgres": Place(
            tables(create_async_engine(postgres.set(drivername="postgresql+asyncpg"))),
            remote(POSTGRES_URL),
            tables_at=postgres,
        ),
        "mariadb": Place(
            tables(in_mariadb, makes_tables=False), remote(MARIADB_URL), tables_at=mariadb.url(database="agents")
        ),
        "sqlite_url": Place(
            tables(create_async_engine(f"sqlite+aiosqlite:///{by_url}")),
            remote(SQLITE_URL),
            tables_at=in_file(by_url),
        ),
        "sqlite": Place(
            given(lambda session_id: ClosedAfterwards(lambda: SQLiteSession(session_id, sqlite))),
            at("sqlite", sqlite),
            tables_at=in_file(sqlite),
        ),
        "advanced": Place(given(advanced_session), at("advanced_sqlite", advanced)),
        "redis": Place(keys(), {"kind": "redis", "options": {"url_env": REDIS_URL}}),
        "chats": Place(given(lambda session_id: Chat(chats / f"{session_id}.json")), at("json_file", chats), WHOLE),
        "agno": Place(given(AgnoRuns.of(postgres)), document("agno", "ai.agno_sessions"), AgnoRuns.at_once),
        "phidata": Place(given(PhidataHistory.of(postgres)), document("phidata", f"ai.{PhidataHistory.table}"), WHOLE),
    }


def in_file(path: Path) -> URL:
    return URL.create("sqlite", database=str(path))


def another_database(name: str) -> URL:
    given = connection.get_connection_params()
    reach = {"host": str(given["host"]), "port": str(given["port"])}
    return URL.create("postgresql+psycopg", username=given["user"], database=name, query=reach)


@asynccontextmanager
async def tables(engine: AsyncEngine, *, makes_tables: bool = True) -> AsyncIterator[Opened]:
    try:
        await SQLAlchemySession("first", engine=engine, create_tables=makes_tables).get_items()
        yield lambda session_id: SQLAlchemySession(session_id, engine=engine)
    finally:
        await engine.dispose()


@asynccontextmanager
async def given(opened: Opened) -> AsyncIterator[Opened]:
    yield opened


async def fill(place: Place, sessions: int, items: int) -> None:
    written = min(sessions, WRITTEN) if place.tables_at else sessions
    async with place.opening as opened:
        for number in range(written):
            await opened(ordinary(number)).add_items(messages(range(ITEMS)))
        if place.tables_at:
            copy_sessions(place.tables_at, range(written, sessions))
        for session_id, count in ((VERY_LONG, VERY_LONG_TIMES * items), (LONG, items)):
            session = opened(session_id)
            for start in range(0, count, place.at_once):
                await session.add_items(messages(range(start, min(start + place.at_once, count))))


def ordinary(number: int) -> str:
    return f"customer_{number}:ticket_1"


def copy_sessions(url: URL, numbers: Sequence[int]) -> None:
    """Rows of sessions that were written, under other ids; each row by itself, as they would have come."""
    copies = [{"new": ordinary(number), "old": ordinary(number % WRITTEN)} for number in numbers]
    engine = create_engine(url)
    with engine.begin() as tables_there:
        for statement in (COPY_SESSION, COPY_ITEMS):
            if copies:
                tables_there.execute(text(statement), copies)
    engine.dispose()


COPY_SESSION = """
INSERT INTO agent_sessions (session_id, created_at, updated_at)
SELECT :new, created_at, updated_at FROM agent_sessions WHERE session_id = :old
"""
COPY_ITEMS = """
INSERT INTO agent_messages (session_id, message_data, created_at)
SELECT :new, message_data, created_at FROM agent_messages WHERE session_id = :old ORDER BY id
"""


def spread_times() -> None:
    """MariaDB's times have no fractions: what was written in a few seconds would be nothing but ties."""
    url = os.environ[MARIADB_URL]
    engine = create_engine(url)
    with engine.begin() as mariadb:
        mariadb.exec_driver_sql("UPDATE agent_messages SET created_at = '2026-01-01' + INTERVAL id SECOND")
    engine.dispose()


def messages(numbers: Sequence[int]) -> list[Message]:
    return [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"Message {number}: where is my order, and when does it arrive? " * 4,
        }
        for number in numbers
    ]


class ClosedAfterwards:
    """A session of a file, of which nothing stays open for each of thousands."""

    def __init__(self, open_it: Callable[[], SQLiteSession]) -> None:
        self._open = open_it

    async def add_items(self, items: list[Any]) -> None:
        session = self._open()
        await session.add_items(items)
        session.close()


class Chat:
    """A folder of JSON has no class of the SDK's: a file that is written whole, once."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def add_items(self, items: list[Message]) -> None:
        self._path.write_text(json.dumps(items))


class AgnoRuns:
    """Each call is a run."""

    at_once: ClassVar[int] = 500

    def __init__(self, db: PostgresDb, session_id: str) -> None:
        self._db, self._session_id = db, session_id

    @classmethod
    def of(cls, url: URL) -> Opened:
        db = PostgresDb(db_engine=create_engine(url), db_schema="ai")
        return lambda session_id: cls(db, session_id)

    async def add_items(self, items: list[Message]) -> None:
        created_at = int(time.time())
        session_id = self._session_id
        self._db.upsert_session(AgnoSession(session_id, agent_id="support", user_id=USER, created_at=created_at))
        run = RunOutput(
            run_id=str(uuid4()),
            agent_id="support",
            session_id=session_id,
            user_id=USER,
            content=items[-1]["content"],
            messages=[AgnoMessage(**item, created_at=created_at) for item in items],
            status=RunStatus.completed,
            created_at=created_at,
        )
        self._db.upsert_run(run, session_id, user_id=USER)


class PhidataHistory:
    """A session is one document, written once."""

    table: ClassVar[str] = "support_bots"

    def __init__(self, storage: PgAgentStorage, session_id: str) -> None:
        self._storage, self._session_id = storage, session_id

    @classmethod
    def of(cls, url: URL) -> Opened:
        storage = PgAgentStorage(cls.table, schema="ai", db_engine=create_engine(url))
        storage.create()
        return lambda session_id: cls(storage, session_id)

    async def add_items(self, items: list[Message]) -> None:
        created_at = int(time.time())
        memory = AgentMemory(messages=[PhidataMessage(**item, created_at=created_at) for item in items])
        self._storage.upsert(
            PhidataSession(
                session_id=self._session_id,
                agent_id="support",
                user_id=USER,
                memory=memory.to_dict(),
                session_data={},
            )
        )
