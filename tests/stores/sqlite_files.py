"""An agent that keeps its sessions in a file of SQLite, and the contract of stores for it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from agents import SQLiteSession

from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store
from sessions_app.stores.sqlite import file as sqlite_file
from tests.stores.contract import SdkAgent, StoreContract, in_agent
from tests.stores.sqlite_troubles import SqliteFile


class SqliteAgent(SqliteFile, SdkAgent):
    """Keeps the file open all the time, as an agent's process does."""

    kind = "sqlite"
    session_class: Any = SQLiteSession
    tables: ClassVar[dict[str, str]] = {}
    journal_mode = "WAL"
    lacks_tables = "does not have the tables"

    def __init__(self, folder: Path, name: str = "files") -> None:
        self.path = folder / "agents.db"
        self.sessions: dict[str, Any] = {}
        self.session("first")
        self.read("first")
        self.store = declare_store(name, kind=self.kind, options={"path": str(self.path)}, **cast(Any, self.tables))
        attach_store(self.store)

    def session(self, session_id: str) -> Any:
        if session_id not in self.sessions:
            self.sessions[session_id] = self.session_class(session_id, self.path, **self.tables)
        return self.sessions[session_id]

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        return in_agent(getattr(self.worn(self.session(session_id)), name)(*arguments))

    def table(self, name: str) -> str:
        return self.tables.get(name, {"messages_table": "agent_messages", "sessions_table": "agent_sessions"}[name])

    def ask(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            return connection.execute(query, parameters).fetchall()

    def stored(self, session_id: str) -> list[str]:
        query = f"SELECT message_data FROM {self.table('messages_table')} WHERE session_id = ? ORDER BY id"
        return [text for (text,) in self.ask(query, session_id)]

    def age(self, session_id: str, by: timedelta) -> None:
        self.ask(
            f"UPDATE {self.table('messages_table')} SET created_at = datetime(created_at, ?) WHERE session_id = ?",
            f"-{int(by.total_seconds())} seconds",
            session_id,
        )

    @contextmanager
    def text_reads(self) -> Iterator[list[str] | None]:
        reads: list[str] = []
        open_file = sqlite_file.open_file

        def traced(path: str, mode: str) -> sqlite3.Connection:
            connection = open_file(path, mode)
            connection.set_trace_callback(
                lambda statement: reads.append(statement) if "message_data" in statement else None
            )
            return connection

        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(sqlite_file, "open_file", traced)
            yield reads

    def close(self) -> None:
        for session in self.sessions.values():
            closing_it = session.close()
            if closing_it is not None:
                in_agent(closing_it)
        self.sessions.clear()


class SqliteContract(StoreContract):
    agent_class: type[SqliteAgent] = SqliteAgent

    @pytest.fixture
    def agent(self, db: None, folder_in_memory: Path) -> Iterator[SqliteAgent]:
        agent = self.agent_class(folder_in_memory)
        yield agent
        agent.close()
