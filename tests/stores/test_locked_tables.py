"""Somebody changes the agents' tables, and holds a lock that readers wait for, too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Permission
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from psycopg import sql

from sessions_app.admin import agents as raw_admin
from sessions_app.models import SessionRecord, SessionStore, TextSearch
from sessions_app.services.health_checks import check_stores
from sessions_app.services.inspection import inspect_quiet_sessions
from sessions_app.stores.sqlalchemy import postgres
from tests.agents import add_items, run_sql, second_connection, value_of
from tests.people import person

LOCKED = "Another transaction has locked the agents&#x27; tables"


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("a", "Where is my suitcase?")
    return SessionRecord.objects.get()


@pytest.fixture
def locked(record: SessionRecord, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Both tables, for as long as the test takes. What waits without a limit of its own is cancelled in other words."""
    for module in (postgres, raw_admin):
        monkeypatch.setattr(module, "LIMIT_WAITING", sql.SQL("SET LOCAL lock_timeout = '50ms'"))
    run_sql("SET statement_timeout = '5s'")
    with second_connection() as somebody:
        somebody.execute("LOCK TABLE agent_sessions, agent_messages IN ACCESS EXCLUSIVE MODE")
        yield
    run_sql("RESET statement_timeout")


def test_the_lists_know_the_sessions_and_not_their_words(record: SessionRecord, locked: None, operator: Client) -> None:
    for page in ("sessions:overview", "sessions:list"):
        answer = operator.get(reverse(page))
        assert answer.status_code == 200
        assert str(record.pk) in answer.text
        assert "The store is not responding" in answer.text


def test_a_session_says_why_it_cannot_be_read(record: SessionRecord, locked: None, operator: Client) -> None:
    for page in ("sessions:timeline", "sessions:export-jsonl", "sessions:export-markdown"):
        answer = operator.get(reverse(page, args=[record.pk]))
        assert answer.status_code == 503
        assert LOCKED in answer.text


def test_the_open_end_of_a_session_is_left_alone(record: SessionRecord, locked: None, operator: Client) -> None:
    assert operator.get(reverse("sessions:live", args=[record.pk])).status_code == 204


def test_stores_say_that_they_are_locked(locked: None, operator: Client) -> None:
    check_stores()
    for page in (reverse("sessions:stores"), reverse("sessions:store", args=["main"])):
        assert LOCKED in operator.get(page).text


def test_a_search_in_what_was_said_says_so(record: SessionRecord, locked: None, operator: Client) -> None:
    operator.post(reverse("sessions:search"), {"q": "suitcase"})
    answer = operator.get(reverse("sessions:search-messages", args=[TextSearch.objects.get().pk]))
    assert LOCKED in answer.text
    answer = operator.post(reverse("sessions:find", args=[record.pk]), {"q": "suitcase"})
    assert LOCKED in answer.text


def test_the_raw_admin_says_so(record: SessionRecord, locked: None, client: Client) -> None:
    editor = person()
    editor.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    client.force_login(editor)
    for address in ("/admin/sessions_app/agentmessage/", "/admin/sessions_app/agentmessage/1/change/"):
        answer = client.get(address)
        assert answer.status_code == 409
        assert "Try again" in answer.text


def test_commands_and_jobs_end_too(locked: None) -> None:
    with pytest.raises(CommandError, match="locked"):
        call_command("attach_store", "main")
    call_command("check_stores")
    assert inspect_quiet_sessions() == 0


def test_nothing_is_left_on_the_connection(record: SessionRecord, operator: Client) -> None:
    """A pooler may give it to somebody else, who waits for as long as they like."""
    operator.get(reverse("sessions:timeline", args=[record.pk]))
    assert postgres.fetch("SELECT current_setting('lock_timeout')") == [(postgres.LOCK_TIMEOUT,)]
    assert value_of("SHOW lock_timeout") == "0"
