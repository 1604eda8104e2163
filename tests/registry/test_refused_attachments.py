"""A refused attachment leaves no store, no trigger, no record and no event that claims it; a store that is not attached
can be removed.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

import pytest
from agents import SQLiteSession
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import attach_plan
from sessions_app.services import attaching
from sessions_app.services.discovery import discover_sessions
from sessions_app.services.store_config import declare_store
from sessions_app.stores.base import StoreHealth, StoreUnavailable
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.agents import add_items, attach_main_store, make_agent_tables, second_connection
from tests.builders import make_session
from tests.stores.contract import in_agent

MESSAGES = """
CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TIMESTAMP)
"""


def attach(*arguments: str) -> str:
    out = StringIO()
    call_command("attach_store", *arguments, stdout=out)
    return out.getvalue()


def what_is_left() -> tuple[list[str], int, list[str]]:
    """Names of stores, number of session records, and triggers on tables of agents."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tgname FROM pg_trigger WHERE tgname ~ '^memadmin_.*_[0-9]+$' ORDER BY tgname")
        triggers = [name for (name,) in cursor.fetchall()]
    return list(SessionStore.objects.values_list("name", flat=True)), SessionRecord.objects.count(), triggers


def declared_events() -> int:
    return AuditEvent.objects.filter(type__in=("store.declared", "store.attached")).count()


@pytest.fixture
def file(db: None, tmp_path: Path) -> Path:
    """A file of an agent with one session."""
    path = tmp_path / "agents.db"
    with closing(SQLiteSession("talk", path)) as session:
        in_agent(session.add_items([{"role": "user", "content": "Hello"}]))
    return path


def away(*args: object, **kwargs: object) -> NoReturn:
    raise StoreUnavailable("It is away.")


class TestNothingIsLeft:
    def test_whatever_it_is_refused_for(self, file: Path) -> None:
        no_file, text, half = (str(file.with_name(name)) for name in ("typo.db", "text.db", "half.db"))
        Path(text).write_text("no database")
        with closing(sqlite3.connect(half)) as database, database:
            database.execute(MESSAGES)
        attach("first", "--kind", "sqlite", "--path", str(file))
        before, events = what_is_left(), declared_events()
        refused = {
            "no such file": ["--kind", "sqlite", "--path", no_file],
            "a folder": ["--kind", "sqlite", "--path", str(file.parent)],
            "not a database": ["--kind", "sqlite", "--path", text],
            "a table is missing": ["--kind", "sqlite", "--path", half],
            "other tables": ["--kind", "sqlite", "--path", str(file), "--messages-table", "nowhere"],
            "without branches": ["--kind", "advanced_sqlite", "--path", str(file)],
            "not a folder": ["--kind", "json_file", "--path", no_file],
            "in use": ["--kind", "sqlite", "--path", str(file)],
            "a link to one in use": ["--kind", "sqlite", "--path", f"{file.parent}/../{file.parent.name}/agents.db"],
            "tables that are not there": ["--sessions-table", "nowhere", "--messages-table", "nothing"],
            "a zone": ["--kind", "sqlite", "--path", str(file), "--timezone", "Atlantis"],
        }
        left = {}
        for fault, arguments in refused.items():
            with pytest.raises(CommandError):
                attach("typo", *arguments)
            if (found := (what_is_left(), declared_events())) != (before, events):
                left[fault] = found
        assert left == {}

    def test_the_right_kind_and_another_name_are_accepted_afterwards(self, file: Path) -> None:
        for kind in ("advanced_sqlite", "json_file"):
            with pytest.raises(CommandError):
                attach("typo", "--kind", kind, "--path", str(file))
        assert "with 1 registered session" in attach("typo", "--kind", "sqlite", "--path", str(file))
        attach("typo", "--remove")
        assert "with 1 registered session" in attach("another", "--kind", "sqlite", "--path", str(file))

    def test_one_that_stops_responding_before_it_is_attached(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        healthy, asked = SqliteBackend.health, []

        def away_the_second_time(backend: Any, *, thorough: bool = False) -> StoreHealth:
            asked.append(backend)
            if len(asked) > 1:
                away()
            return healthy(backend, thorough=thorough)

        monkeypatch.setattr(SqliteBackend, "health", away_the_second_time)
        with pytest.raises(CommandError, match="It is away"):
            attach("till", "--kind", "sqlite", "--path", str(file))
        assert what_is_left() == ([], 0, [])
        assert not AuditEvent.objects.filter(type="store.attached").exists()

    def test_one_that_stops_responding_later_is_attached_and_no_error(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(SqliteBackend, "enumerate_sessions", away)
            said = attach("till", "--kind", "sqlite", "--path", str(file))
        assert "till is attached. It is not responding now; its sessions are found once it responds.\n" in said
        assert discover_sessions() == 1
        assert SessionRecord.objects.get().session_id == "talk"

    def test_a_store_that_was_there_keeps_its_settings(self, file: Path) -> None:
        attach("till", "--kind", "sqlite", "--path", str(file))
        attach("till", "--remove")
        before, events = SessionStore.objects.values().get(), declared_events()
        with pytest.raises(CommandError, match="There is no file"):
            attach("till", "--path", str(file.with_name("typo.db")), "--timezone", "Asia/Tokyo")
        assert (SessionStore.objects.values().get(), declared_events()) == (before, events)


class TestTriggers:
    """In the agents' tables the steps are transactions of their own: what was done is undone."""

    @pytest.fixture
    def busy(self, agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(attach_plan, "LOCK_TIMEOUT", "10ms")
        monkeypatch.setattr(attaching, "ATTEMPTS", 2)
        monkeypatch.setattr(attaching, "PAUSE_SECONDS", 0)
        make_agent_tables()

    def test_of_a_new_store_are_removed(self, busy: None) -> None:
        with second_connection() as writer:
            writer.execute("INSERT INTO agent_sessions (session_id) VALUES ('slow')")
            with pytest.raises(CommandError, match="were in use by agents"):
                attach("main")
            writer.commit()
        assert what_is_left() == ([], 0, [])
        assert not AuditEvent.objects.filter(type="store.attached").exists()
        assert "with 1 registered session." in attach("main")

    def test_sessions_that_they_registered_go_with_them(self, busy: None, monkeypatch: pytest.MonkeyPatch) -> None:
        run_once = attaching._run_once

        def refuse_the_last(step: attach_plan.AttachStep) -> None:
            if step.purpose == "Record that the store is attached" and not written:
                written.append(step)
                add_items("meanwhile", "hello")
                raise registry.AttachRefused("PostgreSQL refused it.")
            run_once(step)

        written: list[attach_plan.AttachStep] = []
        monkeypatch.setattr(attaching, "_run_once", refuse_the_last)
        with pytest.raises(CommandError, match="refused it"):
            attach("main")
        assert what_is_left() == ([], 0, [])

    def test_of_an_attached_store_are_as_before(self, busy: None) -> None:
        store = attach_main_store()
        before = what_is_left()
        with second_connection() as writer:
            writer.execute("LOCK TABLE agent_messages IN ROW EXCLUSIVE MODE")
            with pytest.raises(CommandError, match="were in use by agents"):
                attach("main", "--mode", "drop")
            writer.commit()
        store.refresh_from_db()
        assert (store.fence_mode, what_is_left()) == ("reject", before)
        assert registry.check(store).problems == ()


class TestRemoving:
    def test_by_command_one_that_is_not_attached(self, db: None) -> None:
        declare_store("typo", kind="sqlite", options={"path": "/srv/agents/typo.db"})
        assert attach("typo", "--remove", "--dry-run").startswith(
            "-- typo is not attached, and has no session records: it is deleted."
        )
        assert SessionStore.objects.exists()
        assert attach("typo", "--remove") == "typo was not attached, and has no session records: it is deleted.\n"
        assert not SessionStore.objects.exists()
        assert AuditEvent.objects.filter(type="store.deleted").count() == 1
        with pytest.raises(CommandError, match="There is no store typo"):
            attach("typo", "--remove")

    def test_a_script_learns_it(self, db: None) -> None:
        declare_store("typo", kind="sqlite", options={"path": "/srv/agents/typo.db"})
        said = json.loads(attach("typo", "--remove", "--json"))
        assert (said["store"], said["is_attached"], said["steps"]) == ("typo", False, [])

    def test_one_with_records_stays(self, db: None, administrator: Client) -> None:
        store = make_session(store=declare_store("old", kind="sqlite", options={"path": "/srv/agents/old.db"})).store
        assert "still has session records" in attach("old", "--remove")
        page = administrator.get(reverse("sessions:store", args=["old"]))
        assert reverse("sessions:store-remove", args=["old"]) not in page.text
        page = administrator.post(reverse("sessions:store-remove", args=["old"]))
        assert page.status_code == 409
        assert "still has session records" in page.text
        assert SessionStore.objects.get() == store

    def test_an_attached_one_is_detached_first(self, file: Path, administrator: Client) -> None:
        attach("till", "--kind", "sqlite", "--path", str(file))
        SessionRecord.objects.all().delete()
        page = administrator.post(reverse("sessions:store-remove", args=["till"]))
        assert page.status_code == 409
        assert "Run this command again to delete the store." in attach("till", "--remove")
        assert "it is deleted" in attach("till", "--remove")

    def test_on_its_page(self, db: None, administrator: Client, operator: Client) -> None:
        declare_store("typo", kind="sqlite", options={"path": "/srv/agents/typo.db"})
        address = reverse("sessions:store-remove", args=["typo"])
        assert address not in operator.get(reverse("sessions:store", args=["typo"])).text
        assert address in administrator.get(reverse("sessions:store", args=["typo"])).text
        assert operator.post(address).status_code == 403
        assert administrator.get(address).status_code == 405
        assert "The store typo was removed." in administrator.post(address, follow=True).text
        assert not SessionStore.objects.exists()
