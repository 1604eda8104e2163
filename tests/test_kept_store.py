"""What a test on the kept main store leaves to the next one: the store as it was attached, and nothing else."""

from __future__ import annotations

from typing import Any

from django.core.management import call_command
from django.db import connection, transaction

from memadmin.audit.models import AuditEvent
from sessions_app import registry
from sessions_app.models import AgentMessage, SessionRecord, SessionStore
from tests.agents import add_items, run_sql, value_of
from tests.kept_store import kept_main_store as the_kept_store
from tests.kept_store import shape
from tests.people import person

CHANGES = (
    "ALTER TABLE agent_messages ADD COLUMN more text",
    "ALTER TABLE agent_messages ALTER message_data TYPE jsonb USING message_data::jsonb",
    "ALTER TABLE agent_messages RENAME TO agent_messages_of_before",
    "ALTER TABLE agent_messages DISABLE TRIGGER USER",
    "ALTER TABLE agent_sessions ENABLE ROW LEVEL SECURITY",
    "CREATE INDEX ON agent_messages (message_data)",
    "CREATE TABLE others (id int)",
    "CREATE FUNCTION memadmin_follow_0() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "GRANT SELECT ON agent_messages TO PUBLIC",
    "DROP TABLE agent_messages",
)


def flush() -> None:
    call_command("flush", interactive=False, verbosity=0)


def all_rows() -> list[Any]:
    return [*SessionStore.objects.values(), *AuditEvent.objects.order_by("number").values()]


def test_rows_go_and_those_of_the_store_come_back(kept_main_store: SessionStore) -> None:
    before = all_rows()
    add_items("s", "Where is my order?")
    (item,) = AgentMessage.objects.all()
    person("support")
    SessionStore.objects.update(state="down", encryption_key="old")
    assert all_rows() != before

    the_kept_store.after_test()
    flush()

    assert all_rows() == before
    for model in (AgentMessage, SessionRecord):
        assert not model._default_manager.exists()
    assert value_of("SELECT count(*) FROM agent_sessions") == 0
    assert registry.health(kept_main_store).state == "ok"
    add_items("s", "Where is my order?")
    assert AgentMessage.objects.get().pk == item.pk
    assert SessionRecord.objects.get().store == kept_main_store


def test_every_change_besides_rows_is_noticed(kept_main_store: SessionStore) -> None:
    before = shape()
    add_items("s", "Where is my order?")
    run_sql("ANALYZE agent_messages")
    assert shape() == before
    unnoticed = []
    for change in CHANGES:
        with transaction.atomic():
            run_sql(change)
            if shape() == before:
                unnoticed.append(change)
            transaction.set_rollback(True)
    assert unnoticed == []


def test_such_a_change_ends_the_store(kept_main_store: SessionStore) -> None:
    run_sql("ALTER TABLE agent_messages ADD COLUMN more text")
    the_kept_store.after_test()
    flush()
    assert not SessionStore.objects.exists()
    assert not AuditEvent.objects.exists()
    assert "agent_messages" not in connection.introspection.table_names()
    again = the_kept_store.begin()
    assert registry.health(again).state == "ok"
    assert value_of("SELECT count(*) FROM pg_attribute WHERE attname = 'more'") == 0
