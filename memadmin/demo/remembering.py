"""The demo bots' access to memories: like any agents, with the client and the agents' database role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

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
"""Longer than the default, so that proposals are stored also on a machine that is busy at the start."""

memories = MemoryClient(NOWHERE, subject_in="id")
"""Works without the console's database outside of `reached`."""

tools = memory_tools(memories)
memory_input = memory_filter(memories)
hooks = MemoryHooks(memories)


def agents_url(role: str) -> str:
    """Address of Django's database for agents of one's own, as `MemoryClient` takes it; `role` is the database role."""
    given = connection.get_connection_params()
    return f"postgresql://{role}@/{given['dbname']}?host={quote(given['host'], safe='/')}"


@contextmanager
def reached(role: str) -> Iterator[None]:
    """Connects the bots' memories to Django's database inside the block; `role` is the database role."""
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
    """Options of `Runner.run`: injected memories, and hooks that record the outcome."""
    config = RunConfig(model=model, tracing_disabled=True, call_model_input_filter=memory_input)
    return {"run_config": config, "hooks": hooks}
