"""How the demo bots reach the console's memories: as any agents, under the agents' role in the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agents import RunConfig
from agents.models.interface import Model
from django.db import connection
from psycopg.conninfo import make_conninfo

from memadmin.client.connection import Console
from memadmin.client.hooks import MemoryHooks
from memadmin.client.memories import MemoryClient
from memadmin.client.prompt_context import memory_filter
from memadmin.client.tools import memory_tools

NOWHERE = "host=/nowhere"

PATIENCE_SECONDS = 30.0
"""What the bots learn is what the demo shows, also on a machine that is busy with its start."""

memories = MemoryClient(NOWHERE, subject_in="id")
"""Goes on without the console's database outside of `reached`."""

tools = memory_tools(memories)
told = memory_filter(memories)
hooks = MemoryHooks(memories)


@contextmanager
def reached(role: str) -> Iterator[None]:
    """Within it the bots' memories are those of the database that Django uses; `role` is whom to connect as."""
    given = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname", "sslmode")
    reach = {name: given[name] for name in names if given.get(name)}
    dsn = make_conninfo(**reach | ({"user": role} if role else {}))
    before, memories.console = memories.console, Console(dsn, seconds=PATIENCE_SECONDS)
    try:
        yield
    finally:
        memories.console = before


def run_options(model: Model | None) -> dict[str, Any]:
    """For `Runner.run`: what the bots are told, and what is learned from how it goes."""
    config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=told)
    return {"run_config": config, "hooks": hooks}
