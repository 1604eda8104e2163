"""What the console's triggers and indexes cost an agent: the SDK's `add_items` on two equal databases, by turns."""

from __future__ import annotations

import asyncio
import statistics
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from agents import TResponseInputItem
from agents.extensions.memory import SQLAlchemySession
from sqlalchemy.ext.asyncio import AsyncEngine

from tests.benchmarks.console import CLIENTS
from tests.benchmarks.conversations import Size
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import Timing
from tests.benchmarks.processes import command, say

ROUNDS = 60
"""Writes wait for the disk, which others use too: many short rounds tell a difference of some percent from that."""

CALLS_A_SESSION = 10
"""How often an agent writes to a session before the next one begins."""

AGENTS = "bench_agents"

ITEMS = cast(
    list[TResponseInputItem],
    [
        {"content": "Where is my order? It should have been here by now. " * 3, "role": "user"},
        {
            "arguments": '{"query":"order status"}',
            "call_id": "call_1",
            "name": "search_orders",
            "type": "function_call",
            "id": "fc_1",
            "status": "completed",
        },
        {"call_id": "call_1", "output": "held at the warehouse, " * 20, "type": "function_call_output"},
        {
            "id": "msg_1",
            "content": [
                {
                    "annotations": [],
                    "text": "Sorry, your parcel is late. " * 10,
                    "type": "output_text",
                    "logprobs": [],
                }
            ],
            "role": "assistant",
            "status": "completed",
            "type": "message",
        },
    ],
)


@dataclass(frozen=True, slots=True)
class WriteFigures:
    """What a number of agents got done on tables of each kind."""

    clients: int
    timings: dict[str, Timing]
    rates: dict[str, list[float]]
    """Calls a second in each round."""

    def share(self, kind: str) -> float:
        """Calls a second beside those on bare tables: the median of all rounds."""
        return statistics.median(ours / bare for ours, bare in zip(self.rates[kind], self.rates["bare"], strict=True))

    def as_json(self) -> dict[str, Any]:
        kinds = {
            kind: {
                "calls_per_s": round(statistics.median(self.rates[kind]), 1),
                "share": round(self.share(kind), 3),
                **timing.as_json(),
            }
            for kind, timing in self.timings.items()
        }
        return {"clients": self.clients, **kinds}


def measure_writes(server: BenchServer, size: Size, calls: int) -> list[WriteFigures]:
    """The SDK's `add_items` on copies of the same data, with 1 and with 8 clients.

    "bare" has nothing of ours, "attached" has registry and fence and what records the writes of others. The agents
    write as a role of their own, which is named to the console.
    """
    databases = {kind: f"{size.database}_{kind}" for kind in ("bare", "attached")}
    try:
        server.create_copy(databases["attached"], size.database)
        command(databases["attached"], "search_index", "main", "--drop")
        name_agents(server, databases["attached"])
        server.create_copy(databases["bare"], databases["attached"])
        command(databases["bare"], "attach_store", "main", "--remove")
        return [asyncio.run(write_in_turns(server, databases, clients, calls)) for clients in (1, CLIENTS)]
    finally:
        for database in databases.values():
            server.drop(database)


def name_agents(server: BenchServer, database: str) -> None:
    """Makes the agents' role unless it is there, and attaches the store as docs/database-roles.md says."""
    with server.connect(database) as connection:
        if not connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [AGENTS]).fetchall():
            connection.execute(f"CREATE ROLE {AGENTS} LOGIN")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON agent_sessions, agent_messages TO {AGENTS}")
        connection.execute(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {AGENTS}")
    command(database, "attach_store", "main", "--agent-role", AGENTS)


async def write_in_turns(server: BenchServer, databases: Mapping[str, str], clients: int, calls: int) -> WriteFigures:
    say(f"Measuring: add_items, clients: {clients}.")
    engines = {kind: server.engine(database, user=AGENTS, pool_size=clients) for kind, database in databases.items()}
    figures = WriteFigures(clients, {kind: Timing() for kind in engines}, {kind: [] for kind in engines})
    rounds = min(ROUNDS, -(-calls // clients))
    for engine in engines.values():
        await write(engine, clients, min(2 * CALLS_A_SESSION, calls))
    kinds = list(engines)
    for _ in range(rounds):
        for kind in kinds:
            started = time.perf_counter()
            samples = await write(engines[kind], clients, -(-calls // (rounds * clients)))
            figures.rates[kind].append(len(samples) / (time.perf_counter() - started))
            figures.timings[kind].samples += samples
        # Each has every place in the round as often as the others.
        kinds.append(kinds.pop(0))
    for engine in engines.values():
        await engine.dispose()
    return figures


async def write(engine: AsyncEngine, clients: int, calls: int) -> list[float]:
    """Milliseconds of every call of every client."""
    samples: list[float] = []

    async def agent() -> None:
        for number in range(calls):
            if number % CALLS_A_SESSION == 0:
                session = SQLAlchemySession(f"customer_{uuid.uuid4().hex[:8]}:ticket_1", engine=engine)
            started = time.perf_counter()
            await session.add_items(ITEMS)
            samples.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*(agent() for _ in range(clients)))
    return samples
