"""An event that PostgreSQL commits while a page is drawn: nothing leaves before it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client

from memadmin import audit
from memadmin.audit.models import AuditEvent
from sessions_app.audited import SESSIONS_LISTED
from sessions_app.models import SessionRecord
from tests.agents import run_sql
from tests.audit import test_reads
from tests.audit.test_reads import reader, session

__all__ = ["reader", "session"]  # fixtures

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent_tables")]


def drawing() -> AbstractContextManager[None]:
    return audit.while_drawing(SESSIONS_LISTED, counters={"sessions": 1})


@contextmanager
def log_that_refuses() -> Iterator[None]:
    run_sql("ALTER TABLE audit_event ADD CONSTRAINT nothing_fits CHECK (id IS NULL) NOT VALID")
    try:
        yield
    finally:
        run_sql("ALTER TABLE audit_event DROP CONSTRAINT nothing_fits")


def test_it_is_there_when_the_block_ends() -> None:
    with drawing():
        pass
    assert AuditEvent.objects.get(type="session.listed").counters == {"sessions": 1}


def test_it_is_committed_while_the_block_draws() -> None:
    with connection.copy().cursor() as elsewhere:
        with drawing():
            deadline = monotonic() + 60
            while not is_there(elsewhere):
                assert monotonic() < deadline, "it waits for the end of the block"
                sleep(0.01)
        elsewhere.connection.close()


def is_there(cursor: Any) -> bool:
    cursor.execute("SELECT EXISTS (SELECT FROM audit_event WHERE type = 'session.listed')")
    return bool(cursor.fetchone()[0])


def test_nobody_comes_past_the_block_when_it_cannot_be_written() -> None:
    with log_that_refuses(), pytest.raises(audit.Unavailable), drawing():
        pass
    assert not AuditEvent.objects.filter(type="session.listed").exists()


def test_the_end_of_the_block_waits_for_it() -> None:
    """Somebody holds the log; an insert that waits for them too long fails, and only who waited can know."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '300ms'")
    try:
        with connection.copy().cursor() as elsewhere:
            elsewhere.execute("BEGIN")
            elsewhere.execute("LOCK TABLE audit_event IN EXCLUSIVE MODE")
            with pytest.raises(audit.Unavailable), drawing():
                pass
            elsewhere.execute("ROLLBACK")
            elsewhere.connection.close()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("RESET lock_timeout")


def test_a_statement_of_the_block_comes_after_it() -> None:
    with drawing():
        assert AuditEvent.objects.filter(type="session.listed").count() == 1
        assert AuditEvent.objects.filter(type="session.listed").exists()
    came_by: list[AuditEvent] = []
    with log_that_refuses(), pytest.raises(audit.Unavailable), drawing():
        came_by += AuditEvent.objects.all()
    assert not came_by


def test_a_lost_connection_shows_nothing() -> None:
    with pytest.raises(audit.Unavailable), drawing():
        connection.connection.pgconn.finish()
    connection.close()


def test_what_the_block_raises_is_what_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), drawing():
        raise ZeroDivisionError
    with drawing():
        pass
    assert AuditEvent.objects.filter(type="session.listed").count() == 2, "and the connection goes on"


def test_the_database_answers_after_a_block_that_raises_while_the_log_refuses() -> None:
    with log_that_refuses(), pytest.raises(ZeroDivisionError), drawing():
        raise ZeroDivisionError
    assert not AuditEvent.objects.filter(type="session.listed").exists()


def test_nothing_is_left_open_by_an_event_that_cannot_be_put_together() -> None:
    too_many = audit.while_drawing(SESSIONS_LISTED, shown=[uuid4() for _ in range(1001)])
    with pytest.raises(ValueError, match="names 1001 things"), too_many:
        pass
    with drawing():
        pass
    with connection.copy().cursor() as elsewhere:
        assert is_there(elsewhere), "and what comes next is committed"
        elsewhere.connection.close()


def test_a_refusal_that_the_block_swallows_is_raised_at_its_end() -> None:
    with log_that_refuses(), pytest.raises(audit.Unavailable), drawing(), suppress(audit.Unavailable):
        AuditEvent.objects.exists()


@pytest.mark.parametrize("place", ["timeline", "list", "overview", "list of found"])
def test_a_page_that_leaves_without_waiting_is_noticed(
    place: str, session: SessionRecord, reader: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def sends_and_forgets(*event: Any, **columns: Any) -> Iterator[None]:
        with suppress(audit.Unavailable):
            audit.before_showing(*event, **columns)
        yield

    monkeypatch.setattr(audit, "while_drawing", sends_and_forgets)
    with pytest.raises(AssertionError):
        test_reads.test_without_the_log_nothing_is_shown(place, session, reader)
