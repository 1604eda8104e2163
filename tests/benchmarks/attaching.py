"""How long a writer waits while `attach_store` works on its tables: the SDK's `add_items`, meanwhile and without."""

from __future__ import annotations

import asyncio
import itertools
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from agents.extensions.memory import SQLAlchemySession
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.benchmarks.conversations import Size
from tests.benchmarks.database import BenchServer
from tests.benchmarks.processes import ConsoleProcess, say
from tests.benchmarks.seed import seed
from tests.benchmarks.writes import CALLS_A_SESSION, ITEMS

WRITERS = 4
PAUSE_SECONDS = 0.01
"""Between two calls of a writer: without it they keep the processors busy on which the store is attached."""

WITHOUT = {
    "with the SDK's index": "SELECT",
    "without any index on the items": "DROP INDEX IF EXISTS idx_agent_messages_session_time",
}
"""What is taken from the tables first. Hand-made tables may have no index, and get one of ours."""


@dataclass(frozen=True, slots=True)
class AttachFigures:
    """Of one attachment to tables on which agents write all the time."""

    tables: str
    items: int
    seconds: float
    """From the start of the command until it had ended."""
    calls: int
    longest_ms: float
    longest_without_ms: float
    """Of as many seconds in which nothing was attached."""

    def as_json(self) -> dict[str, Any]:
        return {name: round(value, 1) if isinstance(value, float) else value for name, value in asdict(self).items()}


def measure_attaching(server: BenchServer, size: Size) -> list[AttachFigures]:
    """On a database of its own, gone afterwards, to which the console was never attached."""
    try:
        say(f"Seeding {size.items:,} items to attach to.")
        seed(server, size, size.database)
        with ConsoleProcess(size.database) as console:
            console.command("migrate", "--verbosity=0")
            return [measure(server, size, console, tables, first) for tables, first in WITHOUT.items()]
    finally:
        server.drop(size.database)


def measure(server: BenchServer, size: Size, console: ConsoleProcess, tables: str, first: str) -> AttachFigures:
    say(f"Measuring: attach_store {tables}.")
    with server.connect(size.database) as connection:
        connection.execute(first)

    def attach() -> None:
        console.command("attach_store", "main")

    meanwhile, seconds = asyncio.run(write_during(server, size.database, attach))
    console.command("attach_store", "main", "--remove")
    without, _ = asyncio.run(write_during(server, size.database, lambda: time.sleep(seconds)))
    return AttachFigures(tables, size.items, seconds, len(meanwhile), max(meanwhile), max(without))


async def write_during(server: BenchServer, database: str, work: Callable[[], object]) -> tuple[list[float], float]:
    """Milliseconds of each call that was under way while `work` ran, and the seconds that it took."""
    engine = server.engine(database, pool_size=WRITERS)
    calls: list[tuple[float, float]] = []
    is_over = asyncio.Event()
    writing = [asyncio.create_task(write_until(is_over, engine, calls)) for _ in range(WRITERS)]
    # A writer that failed writes no more: its error is raised below.
    while len(calls) < WRITERS * CALLS_A_SESSION and not any(each.done() for each in writing):
        await asyncio.sleep(0.1)
    started = time.perf_counter()
    await asyncio.to_thread(work)
    ended = time.perf_counter()
    is_over.set()
    await asyncio.gather(*writing)
    await engine.dispose()
    return [1000 * (end - began) for began, end in calls if end > started and began < ended], ended - started


async def write_until(is_over: asyncio.Event, engine: AsyncEngine, calls: list[tuple[float, float]]) -> None:
    """One call after the other, each noted from when to when; the last one is finished."""
    for number in itertools.count():
        if is_over.is_set():
            break
        if number % CALLS_A_SESSION == 0:
            session = SQLAlchemySession(f"customer_{uuid.uuid4().hex[:8]}:ticket_1", engine=engine)
        began = time.perf_counter()
        await session.add_items(ITEMS)
        calls.append((began, time.perf_counter()))
        await asyncio.sleep(PAUSE_SECONDS)
