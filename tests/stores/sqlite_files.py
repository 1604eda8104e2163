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
from tests.stores.contract import SdkAgent, StoreContract, Trouble, in_agent


class SqliteAgent(SdkAgent):
    """Keeps the file open all the time, as an agent's process does."""

    kind = "sqlite"
    session_class: Any = SQLiteSession
    tables: ClassVar[dict[str, str]] = {}

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

    def leftovers(self, words: str) -> list[str]:
        """In the bytes of the file, of its log and of the index of that."""
        files = sorted(self.path.parent.glob("agents.db*"))
        return [file.name for file in files if words.encode() in file.read_bytes()]

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

    @contextmanager
    def put_aside(self, content: bytes | None, sentence: str) -> Iterator[str]:
        """Something else, or nothing, in the place of the file."""
        self.close()
        aside = self.path.with_name("aside")
        self.path.rename(aside)
        if content is not None:
            self.path.write_bytes(content)
        try:
            yield sentence
        finally:
            self.path.unlink(missing_ok=True)
            for log in self.path.parent.glob("agents.db-*"):
                log.unlink()
            aside.rename(self.path)

    @contextmanager
    def damaged(self) -> Iterator[str]:
        self.close()
        content = self.path.read_bytes()
        with self.put_aside(content[:4096] + b"\xff" * (len(content) - 4096), "is damaged") as sentence:
            yield sentence

    @contextmanager
    def locked(self) -> Iterator[str]:
        self.close()
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            other.execute("PRAGMA journal_mode = DELETE")
            other.execute("BEGIN EXCLUSIVE")
            with pytest.MonkeyPatch.context() as impatient:
                impatient.setattr(sqlite_file, "LOCK_SECONDS", 0.01)
                impatient.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.01)
                yield "has locked the file"
            other.execute("ROLLBACK")
            other.execute("PRAGMA journal_mode = WAL")

    def troubles(self) -> dict[str, Trouble]:
        return {
            "deleted": lambda: self.put_aside(None, "There is no file"),
            "not SQLite": lambda: self.put_aside(b"[]" * 5_000, "is not an SQLite file"),
            "empty": lambda: self.put_aside(b"", "does not have the tables"),
            "damaged": self.damaged,
            "locked": self.locked,
        }


class SqliteContract(StoreContract):
    agent_class: type[SqliteAgent] = SqliteAgent

    @pytest.fixture
    def agent(self, db: None, tmp_path: Path) -> Iterator[SqliteAgent]:
        agent = self.agent_class(tmp_path)
        yield agent
        agent.close()
