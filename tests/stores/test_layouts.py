"""Files of SQLite in the layouts of older versions of the SDK, with tables that came later, and of unknown layouts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from agents.extensions.memory import AdvancedSQLiteSession
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.discovery import discover
from sessions_app.services.store_config import declare_store
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable, TurnUsage
from sessions_app.stores.kinds import branching, kinds
from tests.stores.contract import in_agent
from tests.stores.old_layouts import GENERATIONS, LAYOUTS, RESERVATIONS, STRUCTURE, USAGE, USUAL, make_file, rows_of

pytestmark = pytest.mark.django_db


def attached(path: Path, kind: str = "advanced_sqlite", name: str = "old") -> SessionStore:
    store = declare_store(name, kind=kind, options={"path": str(path)})
    attach_store(store)
    return store


def run(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)


class TestKnownLayouts:
    def test_each_is_read_and_changed_and_erased(self, tmp_path: Path) -> None:
        failures = {}
        for number, (versions, tables) in enumerate(LAYOUTS.items()):
            try:
                self.read_change_and_erase(make_file(tmp_path / f"{number}.db", tables), tables, f"old-{number}")
            except (AssertionError, StoreUnavailable, sqlite3.Error) as failure:
                failures[versions] = f"{type(failure).__name__}: {failure}"
        assert failures == {}

    def read_change_and_erase(self, path: Path, tables: tuple[str, ...], name: str) -> None:
        store = attached(path, name=name)
        health, backend = registry.health(store), branching(store)
        assert backend
        assert (health.state, health.sessions, health.items) == ("ok", 2, 4)
        assert ("session_clear_generations (0.20 and later)" in health.layout) == (GENERATIONS not in tables)
        assert {found.session_id for found in backend.enumerate_sessions(limit=10).sessions} == {"gone", "kept"}
        assert backend.previews(["gone"])["gone"].first_user_text == "one of gone"
        (main, _) = backend.branches("gone")
        assert (backend.count("gone"), backend.on_branch(main).count("gone")) == (2, 2)
        assert backend.usage("gone", main) == ([TurnUsage(1, 2, 30, 4, 34)] if USAGE in tables else [])
        first, second = backend.first_page("gone", 5).items
        backend.replace_item("gone", first.id, '{"role": "user", "content": "less"}', expected=first.raw)
        assert backend.delete_items("gone", [second]) == 1
        assert rows_of(path, "gone")["message_structure"] == 2
        kept = rows_of(path, "kept")
        assert backend.erase_session("gone") == 1
        assert rows_of(path, "gone") == ({"session_clear_generations": 1} if GENERATIONS in tables else {})
        assert rows_of(path, "kept") == kept
        assert SessionRecord.objects.get(store=store, session_id="gone").erased_at

    def test_a_newer_sdk_has_written_to_an_older_file(self, tmp_path: Path) -> None:
        path = make_file(tmp_path / "old.db", LAYOUTS["0.9.3"])
        store = attached(path)
        with closing(AdvancedSQLiteSession(session_id="gone", db_path=path)) as session:
            in_agent(session.add_items([{"role": "user", "content": "three of gone"}]))
            assert backend_for(store).erase_session("gone") == 3
            in_agent(session.add_items([{"role": "user", "content": "again"}]))
        assert rows_of(path, "gone")["agent_messages"] == 1
        assert "branch_reservations (0.19.4 and later)" in registry.health(store).layout

    def test_attaching_and_health_and_page_name_the_layout(self, tmp_path: Path, administrator: Client) -> None:
        path, out = make_file(tmp_path / "old.db", LAYOUTS["0.9.3"]), StringIO()
        call_command("attach_store", "old", "--kind", "advanced_sqlite", "--path", str(path), stdout=out)
        found = (
            "Written by AdvancedSQLiteSession of openai-agents: message_structure, turn_usage, without"
            " branch_reservations (0.19.4 and later) and session_clear_generations (0.20 and later)."
        )
        assert found in out.getvalue()
        call_command("check_stores", stdout=out)
        assert out.getvalue().count(found) == 2
        page = administrator.get(reverse("sessions:store", args=["old"]))
        assert found in page.text
        assert "openai-agents 0.3 and later: message_structure" in page.text

    def test_every_kind_declares_what_it_reads(self) -> None:
        assert [kind.name for kind in kinds().values() if not kind.layouts] == []


class TestUnknownLayouts:
    ODD: ClassVar = {
        "items without a time": USUAL.replace(
            "message_data TEXT NOT NULL,\n    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,",
            "message_data TEXT NOT NULL,",
        ),
        "sessions without a last change": USUAL.replace(",\n    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP", ""),
        "structure of another shape": USUAL
        + STRUCTURE.replace("session_id", "conversation").replace("REFERENCES agent_sessions(conversation)", ""),
        "reservations of another shape": USUAL + STRUCTURE + RESERVATIONS.replace("session_id", "conversation"),
    }

    def test_are_refused_when_attached_and_named(self, tmp_path: Path) -> None:
        failures = {}
        for number, (name, script) in enumerate(self.ODD.items()):
            path = tmp_path / f"{number}.db"
            script = script.replace("FOREIGN KEY (conversation)  ON DELETE CASCADE,", "")
            run(path, script)
            kind = "advanced_sqlite" if "message_structure" in script else "sqlite"
            with pytest.raises(CommandError) as refusal:
                call_command("attach_store", "odd", "--kind", kind, "--path", str(path))
            if "no known version of openai-agents writes it like that" not in str(refusal.value):
                failures[name] = str(refusal.value)
        assert failures == {}
        assert not SessionStore.objects.exists()

    def test_that_came_later_is_told_and_nothing_of_the_session_is_erased(self, tmp_path: Path) -> None:
        path = make_file(tmp_path / "old.db", LAYOUTS["0.24"])
        store = attached(path)
        run(path, "ALTER TABLE branch_reservations RENAME COLUMN branch_id TO way")
        before = rows_of(path, "gone")
        assert "branch_reservations has no column branch_id" in registry.health(store).problems[0].sentence
        with pytest.raises(StoreUnavailable, match="branch_reservations has no column branch_id"):
            backend_for(store).erase_session("gone")
        assert rows_of(path, "gone") == before
        assert not SessionRecord.objects.exclude(erased_at=None).exists()

    def test_a_further_table_with_rows_of_sessions_is_a_hint(self, tmp_path: Path) -> None:
        path = make_file(tmp_path / "old.db", LAYOUTS["0.24"])
        pair = USUAL.replace("agent_sessions", "talks").replace("agent_messages", "said")
        run(path, f"{pair}; CREATE TABLE session_notes (session_id TEXT, note TEXT)")
        health = registry.health(attached(path))
        assert health.state == "ok"
        (hint,) = health.hints
        assert "further tables with a column session_id: session_notes." in hint


class TestTablesThatCameLater:
    """An agent's file of SQLiteSession that AdvancedSQLiteSession has opened since it was attached."""

    def stored_by_both(self, path: Path, kind: str, **options: str) -> SessionStore:
        make_file(path, ())
        store = declare_store("plain", kind=kind, options=options or {"path": str(path)})
        attach_store(store)
        for table in LAYOUTS["0.24"]:
            run(path, table)
        with closing(AdvancedSQLiteSession(session_id="gone", db_path=path, create_tables=True)) as session:
            in_agent(session.add_items([{"role": "user", "content": "three of gone"}]))
            in_agent(session.create_branch_from_turn(1, "other way"))
        discover(store)
        return store

    def test_a_plain_store_says_so_and_erases_them(self, tmp_path: Path) -> None:
        path = tmp_path / "plain.db"
        store = self.stored_by_both(path, "sqlite")
        health = registry.health(store)
        assert (health.state, [problem.code for problem in health.problems]) == ("degraded", ["wrong-kind"])
        assert rows_of(path, "gone")["branch_reservations"]
        assert backend_for(store).erase_session("gone") == 3
        assert rows_of(path, "gone") == {"session_clear_generations": 1}

    def test_so_does_one_by_url(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "plain.db"
        monkeypatch.setenv("AGENTS_URL", f"sqlite:///{path}")
        store = self.stored_by_both(path, "remote_sql", url_env="AGENTS_URL")
        assert "wrong-kind" in [problem.code for problem in registry.health(store).problems]
        assert backend_for(store).erase_session("gone") == 3
        assert rows_of(path, "gone") == {"session_clear_generations": 1}

    def test_one_by_url_is_refused_at_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AGENTS_URL", f"sqlite:///{make_file(tmp_path / 'old.db', LAYOUTS['0.9.3'])}")
        with pytest.raises(CommandError, match="Connect it as advanced_sqlite"):
            call_command("attach_store", "old", "--kind", "remote_sql", "--url-env", "AGENTS_URL")

    def test_its_right_kind_takes_the_place_over(self, tmp_path: Path) -> None:
        path = tmp_path / "plain.db"
        self.stored_by_both(path, "sqlite")
        out: Any = StringIO()
        call_command("attach_store", "plain", "--remove", stdout=out)
        call_command("attach_store", "ways", "--kind", "advanced_sqlite", "--path", str(path), stdout=out)
        assert "ways is attached, with 2 registered sessions." in out.getvalue()

    def test_a_store_with_branches_whose_file_has_none_any_more(self, tmp_path: Path) -> None:
        path = make_file(tmp_path / "old.db", LAYOUTS["0.9.3"])
        store = attached(path)
        run(path, "DROP TABLE message_structure; DROP TABLE turn_usage")
        backend = branching(store)
        assert backend
        assert registry.health(store).state == "degraded"
        assert (backend.branches("gone"), backend.count("gone")) == ([], 2)
        assert backend.erase_session("gone") == 2
        assert rows_of(path, "gone") == {}
