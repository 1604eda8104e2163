"""Files and folders that the console may not write to, or not even read: by the rights of the system itself, as a user
who owns nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.core.management import call_command

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.discovery import discover_sessions
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sqlite import file as sqlite_file
from tests.agents import attached_store
from tests.stores.contract import contents, said
from tests.stores.sqlite_files import SqliteAgent

NOBODY = 65534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may do everything; whoever runs the tests as somebody else has to obey the rights anyway."""
    if os.geteuid() != 0:
        yield
        return
    os.setresgid(NOBODY, NOBODY, 0)
    os.setresuid(NOBODY, NOBODY, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that everybody reaches, other than those of pytest."""
    with TemporaryDirectory(prefix="rights-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


class TestSqlite:
    @pytest.fixture
    def agent(self, db: None, folder: Path) -> Iterator[SqliteAgent]:
        agent = SqliteAgent(folder)
        agent.add("talk", said(0))
        discover_sessions()
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        yield agent
        folder.chmod(0o755)
        agent.close()

    @pytest.fixture(params=["while agents have it open", "when all agents have closed it"])
    def read_only(self, request: pytest.FixtureRequest, agent: SqliteAgent) -> SqliteAgent:
        if request.param.startswith("when"):
            with_rights = agent.path.parent
            with_rights.chmod(0o755)
            agent.path.chmod(0o644)
            agent.close()
            agent.path.chmod(0o444)
            with_rights.chmod(0o555)
            assert [file.name for file in with_rights.iterdir()] == ["agents.db"]
        return agent

    @pytest.fixture(params=["by path", "by URL"])
    def store(
        self, request: pytest.FixtureRequest, read_only: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> SessionStore:
        if request.param == "by path":
            return read_only.store
        SessionStore.objects.update(attached_at=None)
        monkeypatch.setenv("FILE_URL", f"sqlite:///{read_only.path}")
        return attached_store("by-url", kind="remote_sql", options={"url_env": "FILE_URL"})

    def test_it_is_read_and_says_that_nothing_can_be_erased(self, store: SessionStore, read_only: SqliteAgent) -> None:
        backend = backend_for(store)
        with as_nobody():
            health, checked = registry.health(store), registry.check(store)
            (item,) = backend.first_page("talk", 5).items
            with pytest.raises(StoreUnavailable, match=r"may not write to .*nothing was changed"):
                backend.erase_session("talk")
            with pytest.raises(StoreUnavailable, match=r"may not write to .*nothing was changed"):
                backend.replace_item("talk", item.id, "{}", expected=item.raw)
            with pytest.raises(StoreUnavailable, match=r"may not write to .*nothing was changed"):
                backend.delete_items("talk", [item])
        for found in (health, checked):
            assert found.state == "degraded"
            assert "read-only" in {problem.code for problem in found.problems}
        assert contents([item]) == [said(0)["content"]]
        assert not SessionRecord.objects.exclude(erased_at=None).exists()
        assert len(read_only.stored("talk")) == 1

    def test_without_reading_it_as_it_lies_there_a_closed_one_cannot_be_read(
        self, read_only: SqliteAgent, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sqlite_file, "is_out_of_reach", lambda path: False)
        is_closed = not read_only.sessions
        with as_nobody():
            assert (registry.health(read_only.store).state == "down") == is_closed

    def test_what_agents_write_meanwhile_is_read(self, agent: SqliteAgent) -> None:
        agent.add("talk", said(1))
        with as_nobody():
            assert len(backend_for(agent.store).first_page("talk", 5).items) == 2

    @pytest.mark.parametrize("closed", ["file", "folder"])
    def test_what_it_may_not_read_is_a_sentence_everywhere(self, agent: SqliteAgent, closed: str) -> None:
        agent.path.parent.chmod(0o755)
        agent.close()  # SQLite opens no file twice in one process
        (agent.path if closed == "file" else agent.path.parent).chmod(0o000)
        printed, backend = StringIO(), backend_for(agent.store)
        with as_nobody():
            (problem,) = registry.health(agent.store).problems
            call_command("check_stores", stdout=printed)
            assert discover_sessions() == 0
            for ask in (lambda: backend.first_page("talk", 5), lambda: backend.erase_session("talk")):
                with pytest.raises(StoreUnavailable, match="check the permissions of the file"):
                    ask()
        assert f"The file {agent.path} cannot be opened; check the permissions of the file" in problem.sentence
        assert problem.sentence in printed.getvalue()
        agent.path.parent.chmod(0o755)


class TestJsonFiles:
    @pytest.fixture
    def store(self, db: None, folder: Path) -> SessionStore:
        (folder / "talk.json").write_text('[{"role": "user", "content": "Where is my kettle?"}]')
        (folder / "talk.json").chmod(0o444)
        folder.chmod(0o555)
        return attached_store("chats", kind="json_file", options={"path": str(folder)})

    def test_a_folder_is_read_and_says_that_nothing_can_be_erased(self, store: SessionStore, folder: Path) -> None:
        backend = backend_for(store)
        with as_nobody():
            health = registry.health(store)
            (item,) = backend.first_page("talk", 5).items
            for ask in (
                lambda: backend.erase_session("talk"),
                lambda: backend.replace_item("talk", item.id, "{}", expected=item.raw),
            ):
                with pytest.raises(StoreUnavailable, match=r"may not change files .* Nothing was changed"):
                    ask()
        assert (health.state, [problem.code for problem in health.problems]) == ("degraded", ["read-only"])
        assert "kettle" in (folder / "talk.json").read_text()

    @pytest.mark.parametrize("closed", ["file", "folder"])
    def test_what_it_may_not_read_is_a_sentence(self, store: SessionStore, folder: Path, closed: str) -> None:
        (folder / "talk.json" if closed == "file" else folder).chmod(0o000)
        backend = backend_for(store)
        with as_nobody():
            state = registry.health(store).state
            with pytest.raises(StoreUnavailable, match=r"This console may not read"):
                backend.first_page("talk", 5)
            assert backend.previews(["talk"])["talk"].item_count == 0 if closed == "file" else True
        assert state == ("degraded" if closed == "file" else "down")
        folder.chmod(0o755)
