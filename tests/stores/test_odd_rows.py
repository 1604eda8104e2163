"""Rows that no library writes, in files of agents: they spoil themselves, never their store, a job or another case."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.erasure import closing
from memadmin.runs.engine import carry_on
from memories_app.models import Memory
from sessions_app import registry
from sessions_app.models import SessionIdPattern, SessionRecord
from sessions_app.services.discovery import discover, discover_sessions
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable
from sessions_app.stores.paged import PagedBackend
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.builders import make_subject
from tests.erasure.builders import approved, work_off
from tests.erasure.copies import started_copy
from tests.memories.builders import approved as approved_memory
from tests.people import person, signed_in
from tests.retention.policies import in_force, swept
from tests.stores.contract import said
from tests.stores.document_agents import InFile
from tests.stores.sqlite_files import SqliteAgent
from tests.stores.test_advanced_sqlite import AdvancedAgent
from tests.stores.test_agno import AgnoAgent
from tests.stores.test_phidata import PhidataAgent

pytestmark = pytest.mark.django_db

NO_TEXT = ("NULL", "x'ff00'", "CAST('talk' AS BLOB)", "x''", "x'00'")
NO_UTF8 = ("CAST(x'ff61' AS TEXT)", "CAST(x'eda080' AS TEXT)", "CAST(x'c080' AS TEXT)")
ODD_NUMBERS = ("'x'", "x'ff'", "-1e400", "'9999-99-99'", "hex(zeroblob(5000))", "CAST(x'ff' AS TEXT)")

DOCUMENTS = {"agno": AgnoAgent, "phidata": PhidataAgent}


@pytest.mark.parametrize("kind", [SqliteAgent, AdvancedAgent])
def test_sessions_of_a_file_with_odd_ids_are_listed(kind: type[SqliteAgent], tmp_path: Path) -> None:
    agent = kind(tmp_path)
    for name in ("good", "zzz"):
        agent.add(name, said(0))
    for value in (*NO_TEXT, *NO_UTF8):
        agent.ask(f"INSERT INTO agent_sessions (session_id) VALUES ({value})")
    for value in NO_TEXT[1:]:
        agent.ask(f"INSERT INTO agent_messages (session_id, message_data) VALUES ({value}, '{{}}')")
    found = discover(agent.store)
    listed = set(SessionRecord.objects.filter(store=agent.store).values_list("session_id", flat=True))
    assert {"good", "zzz"} <= listed
    assert found.odd_ids == len(NO_TEXT) + len(NO_UTF8)
    agent.store.refresh_from_db()
    assert "odd-ids" in {problem.code for problem in registry.health(agent.store).problems}
    agent.close()


def documents(kind: str, folder: Path) -> tuple[Any, sqlite3.Connection]:
    """An agent with a good session and one for each odd row."""
    agent = DOCUMENTS[kind](InFile(folder))
    for name in ("good", *(f"odd-{n}" for n in range(len(ODD_NUMBERS))), *(f"not-{n}" for n in range(len(NO_UTF8)))):
        agent.add(name, {"role": "user", "content": "hello ada-1"})
    return agent, sqlite3.connect(agent.place.path)


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_odd_rows_of_documents_stop_nobody(kind: str, tmp_path: Path) -> None:
    agent, file = documents(kind, tmp_path)
    tables = ["agno_sessions", "agno_runs"] if kind == "agno" else [agent.store.options["table"]]
    with file:
        for table in tables:
            names = {row[1] for row in file.execute(f"PRAGMA table_info({table})")}
            for number, value in enumerate(ODD_NUMBERS):
                for column in names & {"created_at", "updated_at", "run_index"}:
                    file.execute(f"UPDATE {table} SET {column} = {value} WHERE session_id = 'odd-{number}'")
            for number, value in enumerate(NO_UTF8):
                for column in names & {"user_id", "agent_id"}:
                    file.execute(f"UPDATE {table} SET {column} = {value} WHERE session_id = 'not-{number}'")
                file.execute(f"UPDATE {table} SET session_id = {value} WHERE session_id = 'not-{number}'")
    file.close()
    discover(agent.store)
    discover_sessions()
    records = SessionRecord.objects.filter(store=agent.store)
    assert {"good", *(f"odd-{n}" for n in range(len(ODD_NUMBERS)))} <= set(records.values_list("session_id", flat=True))
    assert inspect_quiet_sessions(quiet=timedelta()) == records.count()
    client = signed_in(person("support"))
    for record in records:
        assert client.get(reverse("sessions:timeline", args=[record.pk])).status_code == 200, record.session_id
        backend_for(agent.store).erase_session(record.session_id)
    agent.close()


@pytest.fixture
def officer(db: None) -> User:
    return person("compliance")


@pytest.fixture
def second(db: None) -> User:
    return person("compliance", "reviewer")


@pytest.fixture
def odd_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store with a session "old", and a later one in which a kind meets a value that it did not expect."""
    agent = SqliteAgent(tmp_path)
    for name in ("old", "odd"):
        agent.add(name, said(0))
    discover(agent.store)
    read = SqliteBackend._side

    def side(self: SqliteBackend, connection: Any, session_id: str, *rest: Any) -> Any:
        if session_id == "odd":
            raise ValueError(f"{session_id} is no number")
        return read(self, connection, session_id, *rest)

    monkeypatch.setattr(SqliteBackend, "_side", side)
    yield agent.store
    agent.close()


def test_value_that_a_kind_does_not_expect_is_one_sessions(
    odd_store: Any, officer: User, second: User, tmp_path: Path, settings: Any
) -> None:
    with pytest.raises(SessionUnreadable, match="This session has a value that cannot be read"):
        backend_for(odd_store).first_page("odd", 5)
    assert issubclass(SessionUnreadable, StoreUnavailable)
    record = SessionRecord.objects.get(session_id="odd")
    page = signed_in(person("support")).get(reverse("sessions:timeline", args=[record.pk]))
    assert (page.status_code, "This session has a value that cannot be read" in page.text) == (503, True)
    bob = make_subject("bob-1")
    memory = approved_memory("Drinks tea.", subject=bob)
    in_force("Chats", days=30)
    assert swept().state in ("complete", "exceptions")
    settings.ACCESS_COPY_FOLDER = tmp_path
    copied = carry_on(started_copy(bob, by=officer).run)
    assert copied.state in ("complete", "exceptions")
    request = approved(bob, by=officer, second=second)
    work_off(request)
    assert not Memory.objects.filter(pk=memory.pk).exists()


@pytest.mark.parametrize("whose", ["ada-1", "bob-1"])
def test_id_that_postgresql_does_not_take_stops_no_erasure(
    whose: str, officer: User, second: User, tmp_path: Path
) -> None:
    """Neither of somebody else, nor of the person of the session, whose case names it."""
    agent = SqliteAgent(tmp_path)
    agent.add("good", said(0))
    SessionIdPattern.objects.create(store=agent.store, pattern="c_{subject}:{ticket}", subject_kind="user", position=1)
    odd = f"CAST(x'{b'c_ada-1:'.hex()}' || {{}} AS TEXT)"
    for end in ("CAST(x'610062' AS TEXT)", *NO_UTF8):
        agent.ask(f"INSERT INTO agent_sessions (session_id) VALUES ({odd.format(end)})")
        agent.ask(f"INSERT INTO agent_messages (session_id, message_data) VALUES ({odd.format(end)}, '{{}}')")
    discover(agent.store)
    subject = make_subject(whose)
    memory = approved_memory("Drinks tea.", subject=subject)
    request = approved(subject, by=officer, second=second)
    work_off(request)
    assert request.state == "scanning"
    assert not Memory.objects.filter(pk=memory.pk).exists()
    assert ("odd_id" in {row["code"] for row in closing.exceptions_of(request)}) == (whose == "ada-1")
    agent.close()


def test_broken_variant_without_the_wall_raises_what_a_kind_raises(
    odd_store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SqliteBackend, "window", SqliteBackend.window.__wrapped__)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="is no number"):
        backend_for(odd_store).first_page("odd", 5)
    assert issubclass(SqliteBackend, PagedBackend)
