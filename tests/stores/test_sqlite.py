"""Files of the SDK's SQLiteSession and AsyncSQLiteSession."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from agents import SQLiteSession
from agents.extensions.memory import AsyncSQLiteSession

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.stores import backend_for, sqlite, sqlite_file
from sessions_app.stores.base import SessionBusy, StoreUnavailable
from tests.agents import user
from tests.stores.contract import SECRET, Agent, Item, StoreContract, Trouble, in_agent, said


class SqliteAgent(Agent):
    """Keeps the file open all the time, as an agent's process does."""

    kind = "sqlite"
    session_class: Any = SQLiteSession
    tables: ClassVar[dict[str, str]] = {}

    def __init__(self, folder: Path) -> None:
        self.path = folder / "agents.db"
        self.sessions: dict[str, Any] = {}
        self.session("first")
        self.read("first")
        self.store = registry.declare_store(
            "files", kind=self.kind, options={"path": str(self.path)}, **cast(Any, self.tables)
        )
        registry.attach(self.store)

    def session(self, session_id: str) -> Any:
        if session_id not in self.sessions:
            self.sessions[session_id] = self.session_class(session_id, self.path, **self.tables)
        return self.sessions[session_id]

    def add(self, session_id: str, *items: Item) -> None:
        in_agent(self.session(session_id).add_items(list(items)))

    def read(self, session_id: str) -> list[Item]:
        return cast(list[Item], in_agent(self.session(session_id).get_items()))

    def pop(self, session_id: str) -> None:
        in_agent(self.session(session_id).pop_item())

    def forget(self, session_id: str) -> None:
        in_agent(self.session(session_id).clear_session())

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
                impatient.setattr(sqlite_file, "LOCK_SECONDS", 0.1)
                impatient.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.1)
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


class CustomTables(SqliteAgent):
    tables: ClassVar[dict[str, str]] = {"sessions_table": "talks", "messages_table": "said"}


class AsyncAgent(SqliteAgent):
    """Each call on a connection of its own, because those of this class belong to the event loop they began in."""

    def session(self, session_id: str) -> Any:
        return Opened(self.path, session_id)


class Opened:
    def __init__(self, path: Path, session_id: str) -> None:
        self.path, self.session_id = path, session_id

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any) -> Any:
            session = AsyncSQLiteSession(self.session_id, self.path)
            try:
                return await getattr(session, name)(*arguments)
            finally:
                await session.close()

        return call


class TestSqlite(StoreContract):
    agent_class: type[SqliteAgent] = SqliteAgent

    @pytest.fixture
    def agent(self, db: None, tmp_path: Path) -> Iterator[SqliteAgent]:
        agent = self.agent_class(tmp_path)
        yield agent
        agent.close()


class TestSqliteWithOtherTables(TestSqlite):
    agent_class = CustomTables


class TestAsyncSqlite(TestSqlite):
    agent_class = AsyncAgent


class TestLeftovers:
    """What the erasure does besides deleting, each shown to be needed by leaving it out."""

    @pytest.fixture
    def agent(self, db: None, tmp_path: Path) -> Iterator[SqliteAgent]:
        agent = SqliteAgent(tmp_path)
        agent.add("gone", *(user(f"{SECRET} {number}") for number in range(50)))
        agent.add("kept", said(0))
        yield agent
        agent.close()

    def test_without_a_checkpoint_the_text_stays_in_the_log(
        self, agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "empty_log", lambda connection, path: None)
        backend_for(agent.store).erase_session("gone")
        assert agent.leftovers(SECRET) == ["agents.db-wal"]

    def test_without_secure_delete_the_text_stays_in_free_pages(
        self, agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "SECURE_DELETE", "PRAGMA secure_delete = OFF")
        backend_for(agent.store).erase_session("gone")
        assert agent.leftovers(SECRET) == ["agents.db"]

    def test_somebody_who_reads_all_the_time_keeps_the_log_and_is_named(
        self, agent: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "WRITE_PATIENCE_SECONDS", 0.2)
        with closing(sqlite3.connect(agent.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM agent_messages").fetchone()
            with pytest.raises(SessionBusy, match=r"write-ahead log\. Do it again"):
                backend_for(agent.store).erase_session("gone")
            agent.add("kept", said(1))
        assert agent.leftovers(SECRET)
        assert not SessionRecord.objects.filter(session_id="gone").exclude(erased_at=None)
        assert backend_for(agent.store).erase_session("gone") == 0
        assert agent.leftovers(SECRET) == []


class TestFiles:
    def test_a_file_that_may_only_be_read_says_so_and_is_read(self, db: None, tmp_path: Path) -> None:
        agent = SqliteAgent(tmp_path)
        agent.add("talk", said(0))
        with pytest.MonkeyPatch.context() as without_right:
            without_right.setattr(os, "access", lambda path, mode: mode != os.W_OK)
            health = registry.health(agent.store)
        assert (health.state, [problem.code for problem in health.problems]) == ("degraded", ["read-only"])

    def test_items_without_a_row_of_their_session_are_a_session(self, db: None, tmp_path: Path) -> None:
        """SQLite does not check the foreign key unless it is asked to, which the SDK never does."""
        agent = SqliteAgent(tmp_path)
        agent.add("orphan", said(0))
        agent.ask("DELETE FROM agent_sessions WHERE session_id = 'orphan'")
        backend = backend_for(agent.store)
        assert "orphan" in {session.session_id for session in backend.enumerate_sessions(limit=10).sessions}
        assert backend.previews(["orphan"])["orphan"].item_count == 1
        assert backend.erase_session("orphan") == 1
        assert agent.stored("orphan") == []

    def test_a_long_session_is_erased_a_piece_at_a_time(
        self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite, "ROWS_A_TRANSACTION", 7)
        agent = SqliteAgent(tmp_path)
        agent.add("long", *(user(f"{SECRET} {number}") for number in range(21)))
        assert backend_for(agent.store).erase_session("long") == 21
        assert agent.leftovers(SECRET) == []

    def test_what_is_no_text_is_shown_and_can_be_replaced(self, db: None, tmp_path: Path) -> None:
        agent = SqliteAgent(tmp_path)
        agent.add("odd", said(0))
        agent.ask("UPDATE agent_messages SET message_data = x'7b22ff227d'")
        backend = backend_for(agent.store)
        (item,) = backend.first_page("odd", 5).items
        assert item.byte_count == 5
        assert item.raw.encode(errors="surrogateescape") == b'{"\xff"}'
        backend.replace_item("odd", item.id, "{}", expected=item.raw)
        assert agent.stored("odd") == ["{}"]

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({}, "path: This field is required"),
            ({"path": "agents.db"}, "not a whole path"),
            ({"path": ":memory:"}, "not a whole path"),
            ({"path": "/x", "prefix": "y"}, "has no setting prefix; it takes path"),
        ],
    )
    def test_a_store_that_makes_no_sense_is_refused(self, db: None, options: dict[str, str], sentence: str) -> None:
        with pytest.raises(registry.AttachRefused, match=sentence):
            registry.declare_store("files", kind="sqlite", options=options)

    def test_a_file_that_is_not_there_is_not_attached(self, db: None, tmp_path: Path) -> None:
        store = registry.declare_store("files", kind="sqlite", options={"path": str(tmp_path / "none.db")})
        with pytest.raises(registry.AttachRefused, match="There is no file"):
            registry.attach(store)
        assert not (tmp_path / "none.db").exists()

    def test_two_stores_are_not_in_one_place(self, db: None, tmp_path: Path) -> None:
        agent = SqliteAgent(tmp_path)
        with pytest.raises(registry.AttachRefused, match="The store files is in this place already"):
            registry.declare_store("again", kind="sqlite", options={"path": f"{tmp_path}/../{tmp_path.name}/agents.db"})
        with pytest.raises(registry.AttachRefused, match="before it moves to another"):
            registry.declare_store("files", options={"path": "/elsewhere.db"})
        with pytest.raises(registry.AttachRefused, match="of the kind sqlite; give another name"):
            registry.declare_store("files", kind="sqlalchemy")
        agent.close()

    def test_a_store_whose_kind_nobody_brings_is_away(self, db: None) -> None:
        store = SessionStore.objects.create(name="lost", kind="of_our_own")
        assert registry.health(store).state == "down"
        with pytest.raises(StoreUnavailable, match="MEMADMIN_STORE_KINDS"):
            backend_for(store).first_page("x", 1)
