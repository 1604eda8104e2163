"""The event of a page is committed before the page is shown; without the event nothing is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from memadmin import audit
from memadmin.audit.models import AuditEvent
from sessions_app.audit_events import SESSIONS_LISTED
from sessions_app.models import SessionRecord
from tests.agents import run_sql
from tests.audit.test_reads import reader, session, shown_without_the_log

__all__ = ["reader", "session"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent_tables")]


def show() -> None:
    audit.before_showing(SESSIONS_LISTED, counters={"sessions": 1})


@contextmanager
def log_that_refuses() -> Iterator[None]:
    run_sql("ALTER TABLE audit_event ADD CONSTRAINT nothing_fits CHECK (id IS NULL) NOT VALID")
    try:
        yield
    finally:
        run_sql("ALTER TABLE audit_event DROP CONSTRAINT nothing_fits")


def test_it_is_committed_when_the_function_returns() -> None:
    show()
    with connection.copy().cursor() as elsewhere:
        elsewhere.execute("SELECT counters FROM audit_event WHERE type = 'session.listed'")
        assert elsewhere.fetchall() == [('{"sessions": 1}',)]
        elsewhere.connection.close()


def test_it_is_unavailable_when_the_log_refuses_it() -> None:
    with log_that_refuses(), pytest.raises(audit.AuditUnavailable):
        show()
    assert not AuditEvent.objects.filter(type="session.listed").exists()
    show()
    assert AuditEvent.objects.filter(type="session.listed").count() == 1, "and the connection goes on"


def test_it_is_unavailable_when_the_log_is_locked_for_too_long() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '300ms'")
    try:
        with connection.copy().cursor() as elsewhere:
            elsewhere.execute("BEGIN")
            elsewhere.execute("LOCK TABLE audit_event IN EXCLUSIVE MODE")
            with pytest.raises(audit.AuditUnavailable):
                show()
            elsewhere.execute("ROLLBACK")
            elsewhere.connection.close()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_it_is_unavailable_without_a_connection() -> None:
    connection.ensure_connection()
    connection.connection.close()
    with pytest.raises(audit.AuditUnavailable):
        show()
    connection.close()


def test_a_page_that_is_shown_without_its_event_is_noticed(
    session: SessionRecord, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = audit.before_showing

    def show_all_the_same(*event: Any, **columns: Any) -> None:
        with suppress(audit.AuditUnavailable):
            record(*event, **columns)

    monkeypatch.setattr(audit, "before_showing", show_all_the_same)
    assert shown_without_the_log(session, reader) >= {"timeline", "list", "overview", "list of found"}
