"""The shape of the schema lets the agents' tables and the registry be distributed by session id, as Citus does.

The rules are those that Citus was seen to enforce: keys contain the column by which rows are distributed, and nothing
refers to, or from a trigger reaches, a table that lies elsewhere. Citus itself is not run: Debian has no package of it.
Each exception that is left is named here, and in docs/scaling.md.
"""

from __future__ import annotations

import pytest
from django.apps import apps

from sessions_app.models import SessionRecord
from tests.agents import attach_main_store, run_sql, value_of

pytestmark = pytest.mark.django_db(transaction=True)

DISTRIBUTED = {"agent_sessions", "agent_messages", "sessions_app_sessionrecord", "sessions_app_fenceoutbox"}
"""What would lie together on the server of a session. All else stays on one server, or is on each."""

SET_BY_THE_TRIGGER = {"store_id", "session_id"}

WITHOUT_SESSION_ID = {"accounts_grantedsession", "retention_unfinishedexpiry"}
"""Know a session by its UUID alone. They are read for a record that is known by then: no query goes to all servers."""

REACHED_ELSEWHERE = {"audit_event", "retention_holdlock", "sessions_app_subject", "sessions_app_tombstonelock"}
"""Tables that triggers on these four write to or lock, and that lie elsewhere: the part that is not ready yet."""


@pytest.fixture(autouse=True)
def store(agent_tables: None) -> None:
    attach_main_store()


def rows(query: str) -> list[str]:
    return list(value_of(f"SELECT coalesce(array_agg(DISTINCT found::text), '{{}}') FROM ({query}) AS t(found)"))


def names() -> str:
    return ", ".join(f"'{name}'::regclass" for name in sorted(DISTRIBUTED))


def test_unique_keys_of_ours_contain_the_session_id() -> None:
    """But for the primary key: attaching a distributed store replaces `id` by `(session_id, id)`, on which nothing
    depends."""
    query = """
        SELECT i.indexrelid::regclass FROM pg_index AS i
        WHERE i.indisunique AND NOT i.indisprimary AND i.indrelid IN ({names}) AND NOT EXISTS (
          SELECT FROM pg_attribute AS a
          WHERE a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey) AND a.attname = 'session_id')
    """
    assert rows(query.format(names=names())) == []
    run_sql("CREATE UNIQUE INDEX by_ticket_alone ON sessions_app_sessionrecord (ticket, id)")
    assert rows(query.format(names=names())) == ["by_ticket_alone"]
    run_sql("DROP INDEX by_ticket_alone")


def test_no_foreign_key_crosses_the_border() -> None:
    """The SDK's own, from items to their session, lies within."""
    query = f"""
        SELECT conname FROM pg_constraint
        WHERE contype = 'f' AND (conrelid IN ({names()})) <> (confrelid IN ({names()}))
    """
    assert rows(query) == []
    within = f"SELECT conrelid::regclass FROM pg_constraint WHERE contype = 'f' AND confrelid IN ({names()})"
    assert rows(within) == ["agent_messages"]


def test_session_ids_have_one_type() -> None:
    """A text column cannot lie beside the SDK's varchar."""
    query = "SELECT atttypid::regtype FROM pg_attribute WHERE attname = 'session_id' AND attrelid IN ({names})"
    assert rows(query.format(names=names())) == ["character varying"]


def test_every_table_about_a_session_has_its_id() -> None:
    without = set()
    for model in apps.get_models():
        columns = {field.column for field in model._meta.concrete_fields}
        refers = {field.column for field in model._meta.concrete_fields if field.related_model is SessionRecord}
        if (refers or "record_id" in columns) and "session_id" not in columns:
            without.add(model._meta.db_table)
    assert without == WITHOUT_SESSION_ID


def test_the_trigger_can_add_a_record_that_it_knows_only_by_its_key() -> None:
    query = """
        SELECT attname FROM pg_attribute
        WHERE attrelid = 'sessions_app_sessionrecord'::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull
          AND NOT atthasdef AND attidentity = ''
    """
    assert set(rows(query)) == SET_BY_THE_TRIGGER


def test_what_triggers_reach() -> None:
    """A trigger runs where its row is. What it reaches elsewhere has to be there too, or must come from an outbox."""
    ours = rows("SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace")
    bodies = rows(
        f"SELECT p.prosrc FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid"
        f" WHERE NOT t.tgisinternal AND t.tgrelid IN ({names()})"
    )
    assert bodies
    reached = {name for name in ours for body in bodies if name in body}
    assert reached - DISTRIBUTED == REACHED_ELSEWHERE
    assert not any("notify" in body.lower() for body in bodies)
