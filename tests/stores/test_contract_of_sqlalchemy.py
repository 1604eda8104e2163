"""The contract of all stores, on the main database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from sqlalchemy.exc import DBAPIError

from sessions_app.models import SessionStore
from tests.agents import in_sdk, run_sql
from tests.stores.contract import SdkAgent, StoreContract, Trouble
from tests.stores.sealed_contract import SealedContract


class MainAgent(SdkAgent):
    told_of_erasure = (DBAPIError,)

    def __init__(self, store: SessionStore) -> None:
        self.store = store

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        return in_sdk(lambda tables: getattr(self.worn(tables.session(session_id)), name)(*arguments))

    def stored(self, session_id: str) -> list[str]:
        query = "SELECT message_data FROM agent_messages WHERE session_id = %s ORDER BY created_at, id"
        with connection.cursor() as cursor:
            cursor.execute(query, [session_id])
            return [text for (text,) in cursor.fetchall()]

    def leftovers(self, words: str) -> list[str]:
        found = []
        with connection.cursor() as cursor:
            for table, columns in (("agent_messages", "session_id, message_data"), ("agent_sessions", "session_id")):
                cursor.execute(f"SELECT count(*) FROM {table} WHERE concat_ws(' ', {columns}) LIKE %s", [f"%{words}%"])
                if cursor.fetchone() != (0,):
                    found.append(table)
        return found

    def age(self, session_id: str, by: timedelta) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE agent_messages SET created_at = created_at - %s * interval '1 second' WHERE session_id = %s",
                [by.total_seconds(), session_id],
            )

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        reads: list[str] = []

        def noted(execute: Any, statement: Any, *arguments: Any) -> Any:
            # Composed by psycopg or a text.
            if "message_data" in str(statement):
                reads.append(str(statement))
            return execute(statement, *arguments)

        with connection.execute_wrapper(noted):
            yield reads

    @contextmanager
    def renamed(self) -> Iterator[str]:
        for table in ("agent_messages", "agent_sessions"):
            run_sql(f"ALTER TABLE {table} RENAME TO {table}_of_before")
        try:
            yield "(no|The) tables? agent_(sessions|messages)"
        finally:
            for table in ("agent_messages", "agent_sessions"):
                run_sql(f"ALTER TABLE {table}_of_before RENAME TO {table}")

    def troubles(self) -> dict[str, Trouble]:
        return {"tables renamed": self.renamed}


class TestMainStore(StoreContract, SealedContract):
    @pytest.fixture
    def agent(self, kept_main_store: SessionStore) -> MainAgent:
        return MainAgent(kept_main_store)
