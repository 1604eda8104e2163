"""What others than agents do to the agents' own tables is recorded; what agents do there is their work."""

from __future__ import annotations

import json

import psycopg
import pytest
from django.db import connection

from memadmin import audit
from memadmin.audit.models import AuditActor, AuditEvent
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services import outbox
from tests.agents import add_items, attach_main_store, run_sql, second_connection, value_of
from tests.builders import make_subject

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("agent_tables")]


def noted(prefix: str = "stored_") -> list[AuditEvent]:
    return list(AuditEvent.objects.filter(type__startswith=prefix).order_by("number"))


def attach_for(*roles: str) -> SessionStore:
    return attach_main_store(agent_roles=roles)


def test_an_agent_under_its_own_role_leaves_no_events() -> None:
    attach_for(str(value_of("SELECT session_user")))
    add_items("chat-1", "Hello")
    run_sql("DELETE FROM agent_messages")
    run_sql("DELETE FROM agent_sessions")
    assert noted() == []


def test_sql_of_somebody_else_shows_with_their_role_and_without_what_was_said() -> None:
    attach_for("some_agent")
    add_items("chat-1", "Hello", "my heron")
    subject = make_subject()
    SessionRecord.objects.update(subject=subject)
    run_sql("UPDATE agent_messages SET message_data = replace(message_data, 'heron', 'egret')")
    run_sql("DELETE FROM agent_sessions")
    record = SessionRecord.objects.get()
    updated, items_gone, session_gone = (
        AuditEvent.objects.get(type=name)
        for name in ("stored_item.row_updated", "stored_item.row_deleted", "stored_session.row_deleted")
    )
    assert updated.counters == {"rows": 2}
    assert {*updated.shown, *items_gone.shown} == {record.pk, subject.pk}
    assert (session_gone.object_ref, session_gone.subject_ref) == (record.pk, subject.pk)
    assert {event.actor_kind for event in noted()} == {"database"}
    assert AuditActor.objects.get(ref=updated.actor_ref).label == value_of("SELECT session_user")
    assert {event.commitment for event in noted()} == {None}


def test_emptying_the_tables_is_recorded() -> None:
    attach_for("some_agent")
    run_sql("TRUNCATE agent_messages, agent_sessions")
    assert {event.type for event in noted()} == {"stored_item.table_truncated", "stored_session.table_truncated"}


def test_as_long_as_nobody_named_the_agents_roles_only_our_own_writes_are_told_apart() -> None:
    attach_main_store()
    add_items("chat-1", "Hello")
    run_sql("UPDATE agent_messages SET message_data = '{}'")
    assert noted() == []
    with audit.acting(audit.Actor("job", "sweep")):
        run_sql("DELETE FROM agent_messages")
    assert [event.type for event in noted()] == ["stored_item.row_deleted"]
    assert noted()[0].actor_kind == "job"


def test_no_temporary_table_stands_before_those_of_the_log() -> None:
    """The functions run with their owner's rights: what they find must not depend on the session that calls."""
    attach_for("some_agent")
    add_items("chat-1", "Hello")
    before = AuditEvent.objects.count()
    params = {
        name: value
        for name, value in connection.get_connection_params().items()
        if name in ("host", "port", "user", "dbname")
    }
    with psycopg.connect(**params, autocommit=True) as other:
        other.execute("CREATE TEMP TABLE audit_event (LIKE public.audit_event)")
        other.execute("CREATE TEMP TABLE audit_actor (LIKE public.audit_actor)")
        other.execute("SET search_path = pg_temp, public")
        other.execute("DELETE FROM public.agent_messages")
        assert other.execute("SELECT count(*) FROM pg_temp.audit_event").fetchone() == (0,)
    assert AuditEvent.objects.count() == before + 1


def test_what_the_fence_discarded_gets_into_the_log_once() -> None:
    store = attach_main_store(mode="drop")
    add_items("chat-1", "Hello")
    subject = make_subject()
    SessionRecord.objects.update(subject=subject, erased_at="2026-01-01T00:00Z")
    run_sql("DELETE FROM agent_sessions")
    add_items("chat-1", "Are you there?")
    assert outbox.drain_outbox() == 1
    assert outbox.drain_outbox() == 0
    [event] = noted("write.dropped")
    assert (event.actor_kind, event.outcome, event.subject_ref) == ("agent", "denied", subject.pk)
    assert event.object_ref == SessionRecord.objects.get().pk
    assert "happened_at" in json.loads(event.detail.details)
    store.refresh_from_db()
    assert store.dropped_writes == 1


def test_two_who_drain_at_once_move_each_note_once() -> None:
    store = attach_main_store(mode="drop")
    run_sql(
        f"INSERT INTO sessions_app_fenceoutbox (store_id, session_id, event) VALUES ({store.pk}, 'x', 'write.dropped')"
    )
    with second_connection() as other:
        other.execute("SELECT * FROM sessions_app_fenceoutbox FOR UPDATE")
        assert outbox.drain_outbox() == 0
    assert outbox.drain_outbox() == 1
