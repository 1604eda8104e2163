"""Fills the agents' two tables by COPY; everything of ours comes later, by the product's own verbs (`prepare.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from random import Random
from typing import LiteralString

import psycopg
from agents.extensions.memory import SQLAlchemySession

from tests.benchmarks.conversations import SEED, Conversation, Items, Size, Turn, conversations, turns
from tests.benchmarks.database import BenchServer


def seed(server: BenchServer, size: Size, database: str) -> None:
    """A new database with the agents' rows in the order of time, as if agents had written to it for a year."""
    server.create_empty(database)
    asyncio.run(create_tables(server, database))
    random = Random(SEED)
    made = conversations(size, random)
    batches = turns(made, random)
    with server.connect(database) as connection, connection.transaction():
        # The foreign key would be checked row by row; its indexes grow row by row, as they do in real life.
        connection.execute("SET LOCAL session_replication_role = replica")
        copy(
            connection,
            "COPY agent_sessions (session_id, created_at, updated_at) FROM STDIN",
            session_rows(made, batches),
        )
        items = message_rows(made, batches, Items(random, size.items))
        copy(connection, "COPY agent_messages (session_id, message_data, created_at) FROM STDIN", items)


async def create_tables(server: BenchServer, database: str) -> None:
    engine = server.engine(database)
    await SQLAlchemySession("any", engine=engine, create_tables=True).get_items()
    await engine.dispose()


def copy(connection: psycopg.Connection, statement: LiteralString, rows: Iterator[tuple[object, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(statement) as stream:
        for row in rows:
            stream.write_row(row)


def session_rows(made: list[Conversation], batches: list[Turn]) -> Iterator[tuple[str, datetime, datetime]]:
    first: dict[int, datetime] = {}
    last: dict[int, datetime] = {}
    for turn in batches:
        first.setdefault(turn.conversation, turn.written_at)
        last[turn.conversation] = turn.written_at
    for index, conversation in enumerate(made):
        # An agent is at work in each giant at this moment, so they are the first rows of every newest page.
        end = batches[-1].written_at if conversation.is_giant else last[index]
        yield conversation.session_id, first[index], end


def message_rows(made: list[Conversation], batches: list[Turn], items: Items) -> Iterator[tuple[str, str, datetime]]:
    for turn in batches:
        for raw in items.of(turn):
            yield made[turn.conversation].session_id, raw, turn.written_at
