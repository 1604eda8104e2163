"""Who owns the agents' tables may take the fence off them, but comes by none of our rights through it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import Error

from sessions_app.registry import AttachRefused, fence
from sessions_app.registry.fence import CHANGED
from tests.agents import attach_main_store, attached_store, database_role, make_agent_tables, run_sql, value_of

# A type of theirs, which PostgreSQL makes a text or an instant of wherever one is wanted, by a function of theirs.
PLANT = """
CREATE TYPE planted.own AS (value text);
CREATE TABLE planted.ran_as (role name);
GRANT USAGE ON SCHEMA planted TO PUBLIC;
GRANT INSERT ON planted.ran_as TO PUBLIC;
CREATE FUNCTION planted.as_text(planted.own) RETURNS text LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO planted.ran_as VALUES (current_user); RETURN 'a'; END $$;
CREATE FUNCTION planted.as_instant(planted.own) RETURNS timestamptz LANGUAGE plpgsql AS
  $$ BEGIN INSERT INTO planted.ran_as VALUES (current_user); RETURN now(); END $$;
CREATE CAST (planted.own AS text) WITH FUNCTION planted.as_text AS IMPLICIT;
CREATE CAST (planted.own AS timestamptz) WITH FUNCTION planted.as_instant AS IMPLICIT;
"""
TAKE_TYPE = "ALTER TABLE {0} RENAME {1} TO was_{1}; ALTER TABLE {0} ADD {1} planted.own DEFAULT ROW('a')"
AS_SOMEBODY_ELSE = "SELECT set_config('memadmin.actor', 'person:x', true);"

WRITES = {
    "a new session": ("agent_sessions", "updated_at", "INSERT INTO agent_sessions (session_id) VALUES ('b')"),
    "a session written to": ("agent_sessions", "updated_at", "UPDATE agent_sessions SET created_at = now()"),
    "a new session by another id": (
        *("agent_sessions", "session_id"),
        "INSERT INTO agent_sessions (was_session_id) VALUES ('b')",
    ),
    "a session written to by another id": (
        *("agent_sessions", "session_id"),
        "UPDATE agent_sessions SET created_at = now()",
    ),
    "a new item": (
        *("agent_messages", "session_id"),
        "INSERT INTO agent_messages (was_session_id, message_data) VALUES ('a', '{}')",
    ),
    "an item changed by somebody else": (
        *("agent_messages", "session_id"),
        f"{AS_SOMEBODY_ELSE} UPDATE agent_messages SET message_data = '{{}}'",
    ),
    "an item deleted by somebody else": (
        *("agent_messages", "session_id"),
        f"{AS_SOMEBODY_ELSE} DELETE FROM agent_messages",
    ),
}


@pytest.fixture
def owner(agent_tables: None) -> Iterator[str]:
    """Of the agents' tables; what they plant goes with them."""
    with database_role("owner") as role:
        try:
            yield role
        finally:
            run_sql("RESET SESSION AUTHORIZATION; DROP SCHEMA IF EXISTS planted CASCADE")


def write_with_a_type_of_ones_own(owner: str, table: str, column: str, statement: str) -> None:
    run_sql("INSERT INTO agent_sessions (session_id) VALUES ('a')")
    run_sql("INSERT INTO agent_messages (session_id, message_data) VALUES ('a', '{}')")
    run_sql(f"CREATE SCHEMA planted AUTHORIZATION {owner}; GRANT CREATE ON SCHEMA public TO {owner}")
    run_sql(f"ALTER TABLE agent_sessions OWNER TO {owner}; ALTER TABLE agent_messages OWNER TO {owner}")
    run_sql(f"SET SESSION AUTHORIZATION {owner}")
    try:
        run_sql(PLANT)
        run_sql(TAKE_TYPE.format(table, column))
        run_sql(statement)
    finally:
        run_sql("RESET SESSION AUTHORIZATION")


def other_rights_used(owner: str) -> int:
    return int(value_of(f"SELECT count(*) FROM planted.ran_as WHERE role <> '{owner}'"))


@pytest.mark.parametrize("write", WRITES)
def test_no_cast_of_theirs_runs_with_our_rights(owner: str, write: str) -> None:
    attach_main_store(mode="drop")
    with pytest.raises(Error) as refused:
        write_with_a_type_of_ones_own(owner, *WRITES[write])
    assert refused.value.__cause__.sqlstate == CHANGED  # type: ignore[union-attr]
    assert other_rights_used(owner) == 0


@pytest.mark.parametrize("write", WRITES)
def test_broken_variant_that_casts_what_is_there(owner: str, write: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence, "NOT_A_TEXT", "false")
    monkeypatch.setattr(fence, "NOT_AN_INSTANT", "false")
    attach_main_store(mode="drop")
    write_with_a_type_of_ones_own(owner, *WRITES[write])
    assert other_rights_used(owner) > 0


def test_a_type_that_is_called_as_one_of_postgresql_is_not_taken_for_it(owner: str) -> None:
    make_agent_tables()
    run_sql(f"CREATE SCHEMA planted AUTHORIZATION {owner}; CREATE TYPE planted.timestamp AS (value text)")
    run_sql("ALTER TABLE agent_sessions ALTER updated_at DROP DEFAULT")
    run_sql("ALTER TABLE agent_sessions ALTER updated_at TYPE planted.timestamp USING NULL")
    with pytest.raises(AttachRefused, match=r'updated_at of public.agent_sessions is planted."timestamp"; it must be'):
        attached_store("main")
