"""Agents of tests that use the client: in an event loop of their own, with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakSet

from agents import Agent, RunConfig, Runner
from agents.extensions.memory import SQLAlchemySession
from agents.memory import Session
from agents.testing import ScriptedModel, assistant_message
from sqlalchemy.ext.asyncio import create_async_engine

from memadmin.client.connection import Console
from memadmin.client.memories import MemoryClient
from sessions_app.stores.sqlalchemy.engine import asyncpg_arguments
from tests.waiting import PATIENCE_SECONDS

T = TypeVar("T")


_to_close: list[Callable[[], Awaitable[None]]] = []
_clients: WeakSet[MemoryClient] = WeakSet()
"""Also those of fixtures, which several agents of a test use."""


def in_agent(work: Callable[[], Awaitable[T]]) -> T:
    """In a thread of its own, because Playwright keeps an event loop running in the one of the browser tests.

    What `console_at` and `in_postgres` opened meanwhile is closed afterwards, and clients have sent their signals.
    """

    async def run() -> T:
        try:
            return await work()
        finally:
            for client in tuple(_clients):
                await client.aclose()
            while _to_close:
                await _to_close.pop()()

    with ThreadPoolExecutor(1) as agent:
        return agent.submit(asyncio.run, run()).result()


def console_at(dsn: str, **options: Any) -> Console:
    """That of a test about anything but time: an agent's patience is short, and this machine may be busy."""
    console = Console(dsn, **{"seconds": PATIENCE_SECONDS, **options})
    _to_close.append(console.aclose)
    return console


def client_at(dsn: str, *, embedder: Any = "wordllama", **options: Any) -> MemoryClient:
    client = MemoryClient(console_at(dsn, **options), embedder=embedder)
    _to_close.append(client.aclose)
    _clients.add(client)
    return client


def in_postgres(session_id: str, *, role: str = "") -> SQLAlchemySession:
    """The SDK's session in the main store."""
    arguments = asyncpg_arguments() | ({"user": role} if role else {})
    engine = create_async_engine("postgresql+asyncpg://", connect_args=arguments)
    _to_close.append(engine.dispose)
    return SQLAlchemySession(session_id, engine=engine, create_tables=True)


class Customer:
    """What a host application gives a run along."""

    def __init__(self, user_id: str = "") -> None:
        self.user_id = user_id


def plain_bot(name: str = "Support") -> Agent[Any]:
    return Agent(name=name, instructions="You help customers.")


async def talk(
    session: Session | None, said: str, *answers: Any, context: Any = None, bot: Agent[Any] | None = None, **config: Any
) -> ScriptedModel:
    """One run, in which the model answers texts or lists of items; returns the model with what it was asked."""
    model = scripted(*answers or ("Good.",))
    await Runner.run(
        bot or plain_bot(),
        said,
        session=session,
        context=context,
        hooks=config.pop("hooks", None),
        run_config=RunConfig(model=model, tracing_disabled=True, **config),
    )
    return model


def scripted(*steps: Any) -> ScriptedModel:
    return ScriptedModel([[assistant_message(step)] if isinstance(step, str) else step for step in steps])
