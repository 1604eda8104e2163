"""A store of each kind, filled with the same sessions by the SDK's own classes, and its figures, as JSON.

Runs as a program of its own, on the bench's database: see `tests.benchmarks.stores`.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import redis.asyncio
from agents import SQLiteSession
from agents.extensions.memory import AdvancedSQLiteSession, RedisSession, SQLAlchemySession
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from sqlalchemy.ext.asyncio import create_async_engine

from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.declaring import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.sqlalchemy.engine import open_agent_tables
from tests.benchmarks.console import say
from tests.benchmarks.measure import Contender, in_turns
from tests.benchmarks.prepare import sign_in
from tests.stores.mariadb import running_mariadb, tables_by_hand
from tests.stores.servers import RedisServer

CHUNK = 2_000
VERY_LONG_TIMES = 10
"""As many items as there are sessions has the long one, and so many times as many the very long one."""
ITEMS = 4
LONG, VERY_LONG = "customer_long:ticket_1", "customer_very_long:ticket_1"
MARIADB_URL, REDIS_URL = "BENCH_MARIADB_URL", "BENCH_REDIS_URL"

DOWNLOAD = """
import django; django.setup()
from pathlib import Path
from sessions_app.models import SessionRecord
from sessions_app.stores import backend_for

def peak_kb():
    return next(int(line.split()[1]) for line in Path("/proc/self/status").open() if line.startswith("VmHWM"))

record = SessionRecord.objects.get(pk="{record}")
backend = backend_for(record.store)
backend.first_page(record.session_id, 100)
Path("/proc/self/clear_refs").write_text("5")  # The peak begins anew.
before = peak_kb()
count = sum(1 for _ in backend.every_item(record.session_id))
assert count == {items}, count
print((peak_kb() - before) / 1024)
"""

Open = Callable[[str], Any]
"""A session of the SDK by its id, or what is like one."""


def connected_stores(stack: ExitStack, folder: Path, sessions: int) -> list[SessionStore]:
    """All attached, with their sessions on record. Servers of other makers end with the stack."""
    redis_folder = folder / "redis"
    redis_folder.mkdir()
    cache = RedisServer(redis_folder)
    stack.callback(cache.process.kill)
    mariadb = stack.enter_context(running_mariadb())
    mariadb.run("CREATE DATABASE agents CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    mariadb.run(*tables_by_hand(), database="agents")
    os.environ[REDIS_URL] = cache.address
    os.environ[MARIADB_URL] = mariadb.url(database="agents").render_as_string(hide_password=False)
    chats = folder / "chats"
    chats.mkdir()
    sqlite, advanced = folder / "agents.db", folder / "advanced.db"

    @asynccontextmanager
    async def tables(engine: Any, *, makes_tables: bool = False) -> AsyncIterator[Open]:
        try:
            await SQLAlchemySession("first", engine=engine, create_tables=makes_tables).get_items()
            yield lambda session_id: SQLAlchemySession(session_id, engine=engine)
        finally:
            await engine.dispose()

    @asynccontextmanager
    async def keys() -> AsyncIterator[Open]:
        async with redis.asyncio.Redis(unix_socket_path=str(cache.socket)) as client:
            yield lambda session_id: RedisSession(session_id, redis_client=client)

    @asynccontextmanager
    async def files(make: Open) -> AsyncIterator[Open]:
        yield make

    def advanced_session(session_id: str) -> AdvancedSQLiteSession:
        return AdvancedSQLiteSession(session_id=session_id, db_path=advanced, create_tables=True)

    places: dict[str, tuple[AbstractAsyncContextManager[Open], dict[str, Any]]] = {
        "main": (tables(open_agent_tables().engine, makes_tables=True), {}),
        "mariadb": (
            tables(create_async_engine(mariadb.url(driver="mysql+aiomysql", database="agents"))),
            {"kind": "remote_sql", "options": {"url_env": MARIADB_URL}},
        ),
        "sqlite": (
            files(lambda session_id: SQLiteSession(session_id, sqlite)),
            {"kind": "sqlite", "options": {"path": str(sqlite)}},
        ),
        "advanced": (files(advanced_session), {"kind": "advanced_sqlite", "options": {"path": str(advanced)}}),
        "redis": (keys(), {"kind": "redis", "options": {"url_env": REDIS_URL}}),
        "chats": (
            files(lambda session_id: Chat(chats / f"{session_id}.json")),
            {"kind": "json_file", "options": {"path": str(chats)}},
        ),
    }
    stores = []
    for name, (opening, declared) in places.items():
        say(f"Filling {name}.")
        asyncio.run(fill(opening, sessions))
        if name == "mariadb":
            # Times without fractions: a session that was written in a few seconds would be nothing but ties.
            mariadb.run("UPDATE agent_messages SET created_at = '2026-01-01' + INTERVAL id SECOND", database="agents")
        stores.append(declare_store(name, **declared))
        attach_store(stores[-1])
    return stores


async def fill(opening: AbstractAsyncContextManager[Open], sessions: int) -> None:
    async with opening as make:
        for number in range(sessions):
            await add(make(f"customer_{number}:ticket_1"), ITEMS)
        await add(make(VERY_LONG), VERY_LONG_TIMES * sessions)
        await add(make(LONG), sessions)


async def add(session: Any, count: int) -> None:
    for start in range(0, count, CHUNK):
        await session.add_items([message(number) for number in range(start, min(start + CHUNK, count))])
    if isinstance(session, SQLiteSession):
        session.close()


def message(number: int) -> dict[str, str]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"Message {number}: where is my order, and when does it arrive? " * 4}


class Chat:
    """A folder of JSON has no class of the SDK's: a file that is written whole."""

    def __init__(self, path: Path) -> None:
        self._path, self._said = path, list[dict[str, str]]()

    async def add_items(self, items: list[dict[str, str]]) -> None:
        self._said += items
        self._path.write_text(json.dumps(self._said))


def measure(stores: Sequence[SessionStore], items: int, requests: int) -> dict[str, Any]:
    """By the store's name; pages in turns, then what changes something. Memory: by how much a process grows."""
    client = Client()
    client.cookies["sessionid"] = sign_in()["cookie"]

    def ask(address: str) -> Contender:
        def call(number: int) -> None:
            answer = client.get(address, headers={"host": "localhost"}, secure=settings.SECURE_SSL_REDIRECT)
            assert answer.status_code == 200, answer.status_code

        return Contender(call)

    contenders = {}
    for store in stores:
        long = SessionRecord.objects.get(store=store, session_id=LONG)
        contenders["list", store.name] = ask(f"{reverse('sessions:list')}?store={store.name}")
        contenders["timeline", store.name] = ask(reverse("sessions:timeline", args=[long.pk]))
    say(f"Measuring {len(contenders)} pages.")
    pages = in_turns(contenders, requests)
    figures = {}
    for store in stores:
        say(f"Downloading and erasing from {store}.")
        record = SessionRecord.objects.get(store=store, session_id=VERY_LONG)
        program = DOWNLOAD.format(record=record.pk, items=VERY_LONG_TIMES * items)
        download_mb = float(subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout)
        began = time.perf_counter()
        assert backend_for(store).erase_session(LONG) == items
        figures[store.name] = {
            "list": pages["list", store.name].as_json(),
            "timeline": pages["timeline", store.name].as_json(),
            "erased_s": round(time.perf_counter() - began, 2),
            "download_mb": round(download_mb, 1),
        }
    return figures


def main(sessions: int, requests: int) -> None:
    """Prints the figures."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("collectstatic", verbosity=0, interactive=False)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="stores-", ignore_cleanup_errors=True)))
        stores = connected_stores(stack, folder, sessions)
        print(json.dumps(measure(stores, sessions, requests)))
