"""Lists, searches and reports from a real streaming replica: never anything old, and never a page less."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from pytest_django import DjangoDbBlocker

from memadmin import replica
from memadmin.audit.models import AuditEvent
from memadmin.deploy.checks import replica as checks
from memadmin.deploy.system import components
from sessions_app.models import SessionRecord, Subject
from sessions_app.search.remembered import remember_search
from tests.agents import add_items, attach_main_store
from tests.erasure.builders import approved, work_off
from tests.erasure.faults import with_sessions
from tests.memories.builders import approved as approved_memory
from tests.people import person, signed_in
from tests.standby import Standby, reading_from, running_standby
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.release, pytest.mark.django_db(transaction=True, databases=["default", "replica"])]

SAID = "a lighthouse keeper"
LIST = reverse("sessions:list")


@pytest.fixture(scope="module")
def standby(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Standby]:
    with django_db_blocker.unblock(), running_standby() as running, reading_from(running):
        yield running


@pytest.fixture
def reading(standby: Standby, agent_tables: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Standby]:
    """The replica, which is waited for as long as it takes; beside it the main store of an agent."""
    monkeypatch.setattr(replica, "CATCH_UP_SECONDS", PATIENCE_SECONDS)
    replica.ask_again()
    attach_main_store()
    yield standby
    connections[replica.REPLICA].close()


@pytest.fixture
def reader() -> User:
    return person("support", "compliance", "auditor")


def statements_there(act: Callable[[], Any]) -> list[str]:
    with CaptureQueriesContext(connections[replica.REPLICA]) as captured:
        act()
    # Those that ask how far it is are not about a page.
    return [query["sql"] for query in captured.captured_queries if "pg_control_system" not in query["sql"]]


def search_page(user: User, text: str) -> str:
    return reverse("sessions:search-messages", args=[remember_search(user, text).pk])


# --- what is read there -----------------------------------------------------------------------------------------------


def test_lists_and_searches_come_from_it(reading: Standby, reader: User) -> None:
    add_items("s1", f"I am {SAID}.")
    subject = with_sessions("ada", by=reader)
    approved_memory(f"Is {SAID}.", subject=subject)
    browser = signed_in(reader)
    words = remember_search(reader, "lighthouse")
    found = {
        LIST: SAID,
        f"{LIST}?search={words.pk}": "lighthouse",
        reverse("sessions:search-messages", args=[words.pk]): "lighthouse",
        reverse("sessions:search-results", args=[remember_search(reader, "ada:1").pk]): "ada:1",
        reverse("sessions:subjects"): "ada",
        reverse("memories:list"): SAID,
        f"{reverse('memories:list')}?search={words.pk}": "lighthouse",
        reverse("audit:list"): "viewed the audit log",
        reverse("audit:volume"): "events",
    }
    for address, text in found.items():
        pages: list[Any] = []
        there = statements_there(lambda: pages.append(browser.get(address)))  # noqa: B023
        assert pages[0].status_code == 200, address
        assert text.lower() in pages[0].text.lower(), address
        assert there, address
        assert not any("accounts_grant" in sql or "auth_" in sql for sql in there), address


def test_pages_of_content_and_decisions_do_not(reading: Standby, reader: User) -> None:
    add_items("s1", SAID)
    browser, record = signed_in(reader), SessionRecord.objects.get(session_id="s1")
    pages = [record.get_absolute_url(), "/", "/grants/", "/holds/", "/requests/", "/reviews/"]
    for address in pages:
        assert statements_there(lambda: browser.get(address)) == [], address  # noqa: B023


def test_the_event_of_the_read_is_on_the_primary(reading: Standby, reader: User, impatient: None) -> None:
    add_items("s1", SAID)
    with reading.paused():
        signed_in(reader).get(LIST)
        assert AuditEvent.objects.filter(type="session.listed").exists()


def test_transactions_and_rows_that_were_read_there_stay_with_the_primary(reading: Standby) -> None:
    add_items("s1", SAID)
    assert replica.has_caught_up()
    with replica.reads_from_replica():
        record = SessionRecord.objects.get()
        assert record._state.db == replica.REPLICA
        with transaction.atomic():
            assert SessionRecord.objects.get()._state.db == "default"
        assert Subject.objects.db == replica.REPLICA
        assert User.objects.db == "default"
        SessionRecord.objects.filter(pk=record.pk).update(ticket="T-1")
    with reading.paused():
        SessionRecord.objects.filter(pk=record.pk).update(ticket="T-2")
        record.refresh_from_db()
        assert (record.ticket, record.store._state.db) == ("T-2", "default")
        record.agent = "bot"
        record.save(update_fields=["agent"])
        assert SessionRecord.objects.get().agent == "bot"


# --- never anything old -----------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in operation: a page waits for the replica only shortly."""
    monkeypatch.setattr(replica, "CATCH_UP_SECONDS", 0.0)


def test_a_page_shows_what_its_reader_has_just_changed(reading: Standby, reader: User, impatient: None) -> None:
    add_items("s1", SAID)
    browser, record = signed_in(reader), SessionRecord.objects.get()
    with reading.paused():
        browser.post(reverse("sessions:label"), {"session": record.pk, "label": "urgent"})
        assert SAID in browser.get(f"{LIST}?label=urgent").text


def test_an_erased_text_is_never_served_again(reading: Standby, reader: User, impatient: None) -> None:
    subject = with_sessions("ada", by=reader)
    add_items("ada:0", f"I am {SAID}.")
    request = approved(subject, by=reader, second=person("compliance", "reviewer"))
    browser = signed_in(reader)
    addresses = [LIST, search_page(reader, "lighthouse"), search_page(reader, "item")]
    with reading.paused():
        run = work_off(request)
        # The replica itself still has the text, and says so to whoever asks it.
        with connections[replica.REPLICA].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM agent_messages WHERE message_data LIKE %s", [f"%{SAID}%"])
            assert cursor.fetchone() == (1,)
        for address in addresses:
            page = browser.get(address)
            assert page.status_code == 200
            assert SAID not in page.text, address
            assert "of ada" not in page.text, address
        # And the erasure is not over before the replica has it.
        assert "still shows what was erased" in run.reason
        assert (request.state, request.receipt) == ("running", "")


# --- a replica that is away, or none ----------------------------------------------------------------------------------


def test_pages_go_on_when_it_fails_in_the_middle(
    reading: Standby, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_items("s1", SAID)
    browser, asks = signed_in(reader), replica.has_caught_up

    def then_it_ends_the_connection() -> bool:
        answer = asks()
        reading.run(
            "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity"
            f" WHERE datname = '{connection.settings_dict['NAME']}'"
        )
        return answer

    monkeypatch.setattr(replica, "has_caught_up", then_it_ends_the_connection)
    page = browser.get(LIST)
    assert page.status_code == 200
    assert SAID in page.text
    # It is not asked again at once.
    monkeypatch.setattr(replica, "has_caught_up", asks)
    assert not replica.has_caught_up()
    replica.ask_again()
    assert replica.has_caught_up()


@pytest.mark.parametrize("code", ["40001", "25006", "57P01"])
def test_a_query_that_the_replica_cancels_is_repeated_on_the_primary(
    reading: Standby, reader: User, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    add_items("s1", SAID)
    browser = signed_in(reader)
    raising = f"DO $$ BEGIN RAISE 'canceling statement due to conflict with recovery' USING ERRCODE = '{code}'; END $$"
    explain = replica._explain_failures

    def cancelled(execute: Callable[..., Any], *statement: Any) -> Any:
        return explain(execute, raising, None, *statement[2:])

    monkeypatch.setattr(replica, "_explain_failures", cancelled)
    page = browser.get(LIST)
    assert page.status_code == 200
    assert SAID in page.text


def test_positions_of_another_cluster_or_timeline_mean_nothing(
    reading: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    position = replica.position_now()
    old = replace(position, lsn="0/1")
    assert replica.state_at(old).has_all
    for changed in (replace(old, cluster=old.cluster + 1), replace(old, timeline=old.timeline + 1)):
        state = replica.state_at(changed)
        assert (state.has_replayed, state.has_all) == (True, False)
        assert checks.problem_of(state)
        monkeypatch.setattr(replica, "position_now", lambda: changed)  # noqa: B023
        assert not replica.has_caught_up()
        replica.ask_again()


def state_and_findings() -> tuple[str, list[str]]:
    parts = {part.key: part.state for part in components.parts()}
    return parts["replica"], [f"{finding.level}: {finding.title}" for finding in checks.replica()]


def test_the_system_page_and_the_checks_say_how_it_is(reading: Standby) -> None:
    assert replica.has_caught_up()
    assert state_and_findings() == ("ok", [])
    with reading.paused():
        assert state_and_findings() == ("degraded", ["error: The replica's replay is paused"])
        [finding] = checks.replica()
        [statement] = re.findall(r"Run (SELECT [^;]+);", finding.hint)
        reading.run(statement)
        wait_until(lambda: list(checks.replica()) == [])
    assert list(checks.primary()) == []
    try:
        reading.run("ALTER SYSTEM SET max_standby_streaming_delay = -1")
        reading.run("SELECT pg_reload_conf()")
        wait_until(lambda: reading.run("SHOW max_standby_streaming_delay") == "-1")
        [finding] = checks.replica()
        [(name, value)] = re.findall(r"(\w+) is -1: .* Set it to (\w+) in the replica's configuration", finding.hint)
        reading.run(f"ALTER SYSTEM SET {name} = '{value}'")
        reading.run("SELECT pg_reload_conf()")
        wait_until(lambda: list(checks.replica()) == [])
    finally:
        reading.run("ALTER SYSTEM RESET max_standby_streaming_delay")
        reading.run("SELECT pg_reload_conf()")


def test_a_standby_in_place_of_the_primary_is_found(reading: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patching:
        patching.setattr(checks, "fetch", checks.ask_replica)
        [finding] = checks.primary()
        assert "Set it to the primary." in finding.hint
    assert list(checks.primary()) == []


def test_a_slot_without_a_limit_is_a_risk(reading: Standby) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_create_physical_replication_slot('memadmin_test')")
        try:
            [finding] = checks.replica()
            [name] = re.findall(r"has no limit: .* Set (\w+) on the primary", finding.hint)
            cursor.execute(f"ALTER SYSTEM SET {name} = '10GB'")
            cursor.execute("SELECT pg_reload_conf()")
            wait_until(lambda: list(checks.replica()) == [])
        finally:
            cursor.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
            cursor.execute("SELECT pg_reload_conf()")
            cursor.execute("SELECT pg_drop_replication_slot('memadmin_test')")


def test_threads_of_a_view_read_from_the_primary(reading: Standby) -> None:
    with replica.reads_from_replica(), ThreadPoolExecutor(1) as pool:
        assert replica.alias_for_reading() == replica.REPLICA
        assert pool.submit(copy_context().run, replica.alias_for_reading).result() == "default"


def test_without_a_replica_nothing_is_asked(
    standby: Standby, agent_tables: None, reader: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach_main_store()
    monkeypatch.delitem(connections.settings, replica.REPLICA)
    assert not replica.is_configured()
    with CaptureQueriesContext(connection) as captured:
        signed_in(reader).get(LIST)
    assert not any("pg_control_system" in query["sql"] for query in captured.captured_queries)
    assert "replica" not in {part.key for part in components.parts()}
    assert list(checks.replica()) == []


def test_one_that_was_promoted_or_is_gone_is_not_read_from(reading: Standby, reader: User) -> None:
    """The last one of this file: nothing brings the replica back."""
    add_items("s1", SAID)
    browser = signed_in(reader)
    reading.run("SELECT pg_promote(true, 60)")
    assert statements_there(lambda: browser.get(LIST)) == []
    assert state_and_findings() == ("degraded", ["error: MEMADMIN_REPLICA_URL names a server that is no standby"])
    replica.ask_again()
    reading.stop()
    connections[replica.REPLICA].close()
    page = browser.get(LIST)
    assert (page.status_code, SAID in page.text) == (200, True)
    state, findings = state_and_findings()
    assert state == "down"
    assert findings[0].startswith("error: The replica does not respond")
