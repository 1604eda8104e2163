"""Times, marks and ids that agents store and that no calendar or registry has: they spoil their own session at most.

Lists, pages in the outermost time zones, discovery and inspection go on; the session's page, the store's page and
`check_stores` name the item.
"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from memadmin.web.zones import BROWSER_ZONE
from sessions_app import registry
from sessions_app.models import SessionFinding, SessionRecord, SessionStore
from sessions_app.registry import unreadable
from sessions_app.services.discovery import discover
from sessions_app.services.inspection import inspect_session
from sessions_app.stores import backend_for
from tests.people import signed_in
from tests.stores.contract import said
from tests.stores.mariadb import MariaDb
from tests.stores.remote_agents import MariaDbAgent, SqliteByUrlAgent
from tests.stores.servers import RedisServer
from tests.stores.sqlite_files import SqliteAgent
from tests.stores.test_redis import RedisAgent

ZONES = ("Pacific/Kiritimati", "Pacific/Pago_Pago")
"""Those furthest from UTC."""

IN_SQLITE: dict[str, Any] = {
    "infinity": "infinity",
    "negative": -5,
    "year 99999": "99999-01-01 00:00:00",
    "last instant": "9999-12-31 23:59:59",
    "first instant": "0001-01-01 00:00:00",
    "first instant further east": "0001-01-01 00:00:00+14:00",
    "huge number": 2**62,
    "blob": b"\xff\x00",
    "text with a zero byte": "2026\x00",
    "empty": "",
}
IN_MARIADB = ("0000-00-00 00:00:00", "9999-12-31 23:59:59", "1000-01-01 00:00:00", "0001-01-01 00:00:00")
IN_REDIS = (
    b"nan",
    b"inf",
    b"-1e400",
    b"1e30",
    b"253402300799",
    b"-62135596800",
    b"soon",
    b"",
    b"\xff\x00",
    b"9" * 5000,
)


@pytest.fixture
def superuser(db: None) -> Client:
    return signed_in(User.objects.create_superuser("superuser"))


def problems_on_pages(client: Client, store: SessionStore) -> list[tuple[str, str, str]]:
    """Discovers and inspects the sessions of a store, and opens each page that shows them, in the outermost zones."""
    discover(store)
    records = SessionRecord.objects.filter(store=store).select_related("store")
    pages = [reverse("sessions:list"), reverse("sessions:store", args=[store.name])]
    for record in records:
        inspect_session(record)
        (item,) = backend_for(store).first_page(record.session_id, 1).items
        pages += [record.get_absolute_url(), reverse("sessions:item", args=[record.pk, item.id])]
    wrong = []
    for zone in ZONES:
        client.cookies[BROWSER_ZONE] = zone
        for page in pages:
            try:
                answer = str(client.get(page).status_code)
            except Exception as problem:
                answer = repr(problem)[:200]
            if answer != "200":
                wrong.append((zone, page, answer))
    return wrong


def checked(name: str) -> dict[str, Any]:
    out = StringIO()
    call_command("check_stores", as_json=True, stdout=out)
    return next(store for store in json.loads(out.getvalue())["stores"] if store["name"] == name)


def sessions_with(code: str) -> set[str]:
    return set(SessionFinding.objects.filter(kind=code).values_list("session_id", flat=True))


def test_times_in_sqlite(superuser: Client, tmp_path: Path) -> None:
    agent = SqliteAgent(tmp_path)
    agent.add("fine", said(0))
    for name, value in IN_SQLITE.items():
        agent.add(name, said(0))
        agent.ask("UPDATE agent_messages SET created_at = ? WHERE session_id = ?", value, name)
        agent.ask("UPDATE agent_sessions SET created_at = ?, updated_at = ? WHERE session_id = ?", value, value, name)
    assert problems_on_pages(superuser, agent.store) == []
    assert sessions_with("unreadable_time") == set(IN_SQLITE)
    odd = SessionRecord.objects.get(session_id="year 99999")
    assert "unreadable time" in superuser.get(odd.get_absolute_url()).text
    (item,) = backend_for(agent.store).first_page("year 99999", 1).items
    assert "unreadable time" in superuser.get(reverse("sessions:item", args=[odd.pk, item.id])).text
    fine = SessionRecord.objects.get(session_id="fine")
    assert "unreadable time" not in superuser.get(fine.get_absolute_url()).text


def test_what_cannot_be_read_is_counted_with_an_example(
    superuser: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = SqliteAgent(tmp_path)
    for name in ("oldest", "no time", "no JSON"):
        agent.add(name, said(0))
    agent.ask("UPDATE agent_messages SET created_at = 'infinity' WHERE session_id IN ('oldest', 'no time')")
    agent.ask("UPDATE agent_messages SET message_data = 'not JSON' WHERE session_id = 'no JSON'")
    assert problems_on_pages(superuser, agent.store) == []
    SessionRecord.objects.filter(session_id="oldest").update(last_activity_at="2020-01-01T00:00:00Z")
    monkeypatch.setattr(unreadable, "NEWEST", 2)
    examples = {
        code: SessionRecord.objects.get(session_id=name).get_absolute_url()
        for code, name in (("undecodable", "no JSON"), ("unreadable_time", "no time"))
    }
    found = checked(agent.store.name)
    assert {each["finding"]: (each["sessions"], each["example"]) for each in found["unreadable"]} == {
        code: (1, page) for code, page in examples.items()
    }
    assert found["state"] == "ok", "the store is not at fault"
    out = StringIO()
    call_command("check_stores", stdout=out)
    page = superuser.get(reverse("sessions:store", args=[agent.store.name])).text
    for code, example in examples.items():
        title = {"undecodable": "not readable as JSON", "unreadable_time": "unreadable time"}[code]
        sentence = f"Of the newest 2 sessions, 1 has items with the finding “{title}”, such as {example}."
        assert sentence in out.getvalue()
        assert sentence in page


def test_ids_that_the_registry_cannot_store(superuser: Client, tmp_path: Path) -> None:
    """The other sessions are listed; the store says that these are not."""
    agent = SqliteAgent(tmp_path)
    for name in ("fine", "zero", "bytes", "long"):
        agent.add(name, said(0))
    for name, value in (
        ("zero", "'a' || char(0)"),
        ("bytes", "CAST(x'ff41' AS TEXT)"),
        ("long", "printf('%.3000c', 'x')"),
    ):
        for table in ("agent_sessions", "agent_messages"):
            agent.ask(f"UPDATE {table} SET session_id = {value} WHERE session_id = ?", name)
    assert problems_on_pages(superuser, agent.store) == []
    assert SessionRecord.objects.get(store=agent.store).session_id == "fine"
    problems = {problem.code: problem.sentence for problem in registry.health(agent.store).problems}
    assert problems["odd-ids"].startswith("3 of its sessions have ids that are no text")
    agent.ask("DELETE FROM agent_sessions WHERE session_id <> 'fine'")
    agent.ask("DELETE FROM agent_messages WHERE session_id <> 'fine'")
    discover(agent.store)
    assert registry.health(agent.store).state == "ok"


@pytest.mark.slow
def test_times_in_sqlite_by_url(superuser: Client, tmp_path: Path) -> None:
    agent = SqliteByUrlAgent(tmp_path)
    for name, value in IN_SQLITE.items():
        agent.add(name, said(0))
        agent.ask("UPDATE agent_messages SET created_at = :value WHERE session_id = :name", value=value, name=name)
        agent.ask("UPDATE agent_sessions SET updated_at = :value WHERE session_id = :name", value=value, name=name)
    assert problems_on_pages(superuser, agent.store) == []
    assert sessions_with("unreadable_time") == set(IN_SQLITE)
    agent.close()


class OddTimes(MariaDbAgent):
    database = "odd_times"
    time_type = "DATETIME"


@pytest.mark.slow
def test_times_in_mariadb(superuser: Client, mariadb: MariaDb) -> None:
    """Zero dates among them, as a lax server takes them."""
    agent = OddTimes(mariadb)
    agent.add("fine", said(0))
    for value in IN_MARIADB:
        agent.add(value, said(0))
        mariadb.run(
            "SET sql_mode = ''",
            f"UPDATE agent_messages SET created_at = '{value}' WHERE session_id = '{value}'",
            f"UPDATE agent_sessions SET created_at = '{value}', updated_at = '{value}' WHERE session_id = '{value}'",
            database=agent.database,
        )
    assert problems_on_pages(superuser, agent.store) == []
    assert sessions_with("unreadable_time") == {*IN_MARIADB} - {"1000-01-01 00:00:00"}
    agent.close()


@pytest.mark.slow
def test_times_in_redis(superuser: Client, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items have no times; those of the sessions are numbers in a text."""
    agent = RedisAgent(redis_server, monkeypatch)
    for number, value in enumerate(IN_REDIS):
        agent.add(f"odd {number}", said(0))
        redis_server.client.hset(f"{agent.prefix}:odd {number}", mapping={"created_at": value, "updated_at": value})
    agent.add("far", said(0))
    redis_server.client.pexpire(f"{agent.prefix}:far", 250_000_000_000_000)
    assert problems_on_pages(superuser, agent.store) == []
    assert SessionRecord.objects.filter(store=agent.store).count() == len(IN_REDIS) + 1
