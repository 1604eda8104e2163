"""Files of the SDK's SQLiteSession and AsyncSQLiteSession."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agents.extensions.memory import AsyncSQLiteSession

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services import discovery
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionBusy, StoreUnavailable
from sessions_app.stores.sqlite import backend as sqlite
from sessions_app.stores.sqlite import file as sqlite_file
from tests.agents import user
from tests.stores.contract import SECRET, in_agent, said
from tests.stores.sealed_contract import SealedContract
from tests.stores.sqlite_files import SqliteAgent, SqliteContract

pytestmark = pytest.mark.slow


class CustomTables(SqliteAgent):
    tables: ClassVar[dict[str, str]] = {"sessions_table": "talks", "messages_table": "said"}


class AsyncAgent(SqliteAgent):
    """Each call on a connection of its own, because those of this class belong to the event loop they began in."""

    def in_session(self, session_id: str, name: str, *arguments: Any) -> Any:
        async def call() -> Any:
            session = AsyncSQLiteSession(session_id, self.path)
            try:
                return await getattr(self.worn(session), name)(*arguments)
            finally:
                await session.close()

        return in_agent(call())


class TestSqlite(SqliteContract, SealedContract):
    pass


@pytest.mark.release
class TestSqliteWithOtherTables(SqliteContract):
    agent_class = CustomTables


@pytest.mark.release
class TestAsyncSqlite(SqliteContract):
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
            with pytest.raises(SessionBusy, match=r"write-ahead log\. Repeat the operation"):
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
        monkeypatch.setattr(sqlite.SqliteBackend, "erased_at_once", 7)
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
            ({"path": "agents.db"}, "not an absolute path"),
            ({"path": ":memory:"}, "not an absolute path"),
            ({"path": "/x", "prefix": "y"}, "has no setting prefix; its settings are path"),
        ],
    )
    def test_a_store_that_makes_no_sense_is_refused(self, db: None, options: dict[str, str], sentence: str) -> None:
        with pytest.raises(registry.AttachRefused, match=sentence):
            declare_store("files", kind="sqlite", options=options)

    def test_a_file_that_is_not_there_is_not_attached(self, db: None, tmp_path: Path) -> None:
        store = declare_store("files", kind="sqlite", options={"path": str(tmp_path / "none.db")})
        with pytest.raises(registry.AttachRefused, match="There is no file"):
            attach_store(store)
        assert not (tmp_path / "none.db").exists()

    def test_a_file_that_goes_in_the_middle_of_a_discovery_takes_no_session_along(
        self, db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        agent = SqliteAgent(tmp_path)
        for number in range(6):
            agent.add(f"talk-{number}", said(number))
        discover(agent.store)
        monkeypatch.setattr(discovery, "SESSIONS_AT_ONCE", 2)
        gone, losing = tmp_path / "gone.db", list[str]()

        def enumerate_and_lose(self: Any, cursor: str = "", *, limit: int) -> Any:
            page = enumerate_sessions(self, cursor, limit=limit)
            if cursor and not losing:
                losing.append(cursor)
                agent.close()
                agent.path.rename(gone)
            return page

        enumerate_sessions = sqlite.SqliteBackend.enumerate_sessions
        monkeypatch.setattr(sqlite.SqliteBackend, "enumerate_sessions", enumerate_and_lose)
        with pytest.raises(StoreUnavailable, match="There is no file"):
            discover(agent.store)
        assert discovery.discover_sessions() == 0
        assert SessionRecord.objects.filter(missing_since=None, erased_at=None).count() == 6
        assert not agent.path.exists(), "looking for sessions must not make a file"
        gone.rename(agent.path)
        assert discover(agent.store).missing == 0

    def test_a_folder_is_not_attached(self, db: None, tmp_path: Path) -> None:
        store = declare_store("files", kind="sqlite", options={"path": str(tmp_path)})
        with pytest.raises(registry.AttachRefused, match="is a folder, not a file"):
            attach_store(store)

    def test_two_stores_are_not_in_one_place(self, db: None, tmp_path: Path) -> None:
        agent = SqliteAgent(tmp_path)
        with pytest.raises(registry.AttachRefused, match="The store files already uses this location"):
            declare_store("again", kind="sqlite", options={"path": f"{tmp_path}/../{tmp_path.name}/agents.db"})
        with pytest.raises(registry.AttachRefused, match="before it moves to another"):
            declare_store("files", options={"path": "/elsewhere.db"})
        with pytest.raises(registry.AttachRefused, match="of the kind sqlite; use another name"):
            declare_store("files", kind="sqlalchemy")
        agent.close()

    def test_a_store_whose_kind_nobody_brings_is_away(self, db: None) -> None:
        store = SessionStore.objects.create(name="lost", kind="of_our_own")
        assert registry.health(store).state == "down"
        with pytest.raises(StoreUnavailable, match="MEMADMIN_STORE_KINDS"):
            backend_for(store).first_page("x", 1)
