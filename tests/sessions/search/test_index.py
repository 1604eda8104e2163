"""The opt-in index on the agents' table, as an operator builds and drops it while agents write."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from sessions_app.models import SessionStore
from sessions_app.stores.search_protocol import IndexState
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from tests.agents import (
    add_items,
    attached_store,
    database_role,
    run_sql,
    second_connection,
    value_of,
)
from tests.meanwhile import somebody_else, wait_until_blocked


@pytest.fixture
def store(kept_main_store: SessionStore) -> SessionStore:
    return kept_main_store


def search_index(*arguments: str) -> str:
    out = StringIO()
    call_command("search_index", *arguments, stdout=out)
    return out.getvalue()


def as_json(*arguments: str) -> dict[str, Any]:
    return dict(json.loads(search_index(*arguments, "--json")))


def test_operator_builds_the_index_and_learns_what_it_took(store: SessionStore) -> None:
    add_items("s", "Where is my order?")

    built = as_json("main", "--create")

    assert built["state"] == "ready"
    assert built["size_bytes"] > 0
    assert built["built_in_seconds"] >= 0
    assert "Search index ready" in search_index("main")
    # Without these the planner takes every word for a common one.
    assert value_of("SELECT count(*) FROM pg_stats WHERE tablename = 'agent_messages_item_words'") == 1


def test_a_store_starts_without_one(store: SessionStore) -> None:
    assert as_json("main") == {
        "store": "main",
        "state": "absent",
        "index": "",
        "size_bytes": 0,
        "built_in_seconds": None,
    }


def test_the_page_of_the_store_says_it(store: SessionStore, operator: Client) -> None:
    page = operator.get(reverse("sessions:store", args=["main"]))
    assert "No search index; a search reads sessions one by one, newest first." in page.text
    SqlWordIndex(store).create()
    assert "Search index ready, " in operator.get(reverse("sessions:store", args=["main"])).text


def test_operator_drops_it_again(store: SessionStore) -> None:
    search_index("main", "--create")
    assert as_json("main", "--drop")["state"] == "absent"
    assert as_json("main", "--drop")["state"] == "absent"


def test_building_twice_only_renews_the_statistics(store: SessionStore) -> None:
    search_index("main", "--create")
    first = value_of("SELECT 'agent_messages_item_words'::regclass::oid")
    assert "Its statistics were updated" in search_index("main", "--create")
    assert value_of("SELECT 'agent_messages_item_words'::regclass::oid") == first


def test_an_interrupted_build_is_noticed_and_done_again(store: SessionStore) -> None:
    add_items("s", "Hello")
    with second_connection() as agent:
        # The build waits for this agent, and its operator gives up.
        agent.execute("INSERT INTO agent_sessions (session_id) VALUES ('busy')")
        agent.execute("INSERT INTO agent_messages (session_id, message_data) VALUES ('busy', '{}')")
        with second_connection(autocommit=True) as impatient, somebody_else() as start:
            build = (
                "CREATE INDEX CONCURRENTLY agent_messages_item_words"
                " ON agent_messages USING gin (memadmin_item_words(message_data::text))"
            )
            building = start(lambda: impatient.execute(build))
            wait_until_blocked(building, by=agent)
            impatient.cancel()
            with pytest.raises(psycopg.errors.QueryCanceled):
                building.result()
        agent.commit()
    assert as_json("main")["state"] == "invalid"
    assert "Incomplete search index" in search_index("main")

    assert "built again" in search_index("main", "--create")

    assert SqlWordIndex(store).state().state == IndexState.READY


def test_agents_write_while_it_is_built_and_what_they_wrote_is_in_it(store: SessionStore) -> None:
    SqlWordIndex(store).create()
    add_items("s", {"role": "user", "content": "naïve café"}, "x" * 100_000, " ".join(f"w{n}" for n in range(400_000)))

    run_sql("SET enable_seqscan = off")
    try:
        found = value_of("SELECT count(*) FROM agent_messages WHERE memadmin_item_words(message_data::text) @@ 'café'")
    finally:
        run_sql("RESET enable_seqscan")
    assert found == 1


def test_a_store_with_jsonb_columns_in_a_schema_of_its_own(agent_tables: None) -> None:
    run_sql(
        """
        CREATE SCHEMA "Agents";
        CREATE TABLE "Agents"."100% sessions" (session_id text PRIMARY KEY,
            created_at timestamptz NOT NULL DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
        CREATE TABLE "Agents"."100% items" (id bigserial PRIMARY KEY,
            session_id text NOT NULL REFERENCES "Agents"."100% sessions" ON DELETE CASCADE,
            message_data jsonb NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
        CREATE INDEX ON "Agents"."100% items" (session_id, created_at);
        """
    )
    other = attached_store("other", sessions_table="Agents.100% sessions", messages_table="Agents.100% items")

    assert search_index("other", "--create").startswith("Building")

    assert SqlWordIndex(other).state().schema == "Agents"
    assert as_json("other", "--drop")["state"] == "absent"


@pytest.mark.parametrize("verb", [[], ["--create"], ["--drop"]])
def test_unknown_store_and_missing_tables_are_sentences(agent_tables: None, verb: list[str]) -> None:
    with pytest.raises(CommandError, match="There is no store attic"):
        search_index("attic", *verb)
    SessionStore.objects.create(name="empty", messages_table="nowhere")
    with pytest.raises(CommandError, match="The table nowhere is not in this database"):
        search_index("empty", *verb)


def test_a_partitioned_table_is_refused_and_searched_without(agent_tables: None) -> None:
    run_sql(
        """
        CREATE TABLE agent_sessions (session_id text PRIMARY KEY,
            created_at timestamp NOT NULL DEFAULT now(), updated_at timestamp NOT NULL DEFAULT now());
        CREATE TABLE agent_messages (id bigserial, session_id text NOT NULL REFERENCES agent_sessions ON DELETE CASCADE,
            message_data text NOT NULL, created_at timestamp NOT NULL DEFAULT now(), PRIMARY KEY (session_id, id))
            PARTITION BY HASH (session_id);
        CREATE TABLE agent_messages_0 PARTITION OF agent_messages FOR VALUES WITH (MODULUS 1, REMAINDER 0);
        CREATE INDEX ON agent_messages (session_id, created_at);
        """
    )
    attached_store("main")
    with pytest.raises(CommandError, match="The table agent_messages is partitioned"):
        search_index("main", "--create")
    assert as_json("main")["state"] == "absent"
    assert "--create" not in search_index("main")


def test_only_the_owner_of_the_table_can_have_it(store: SessionStore) -> None:
    with database_role("owner") as owner, database_role("console") as console:
        run_sql(f"ALTER TABLE agent_messages OWNER TO {owner}")
        run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {console}; SET ROLE {console}")
        with pytest.raises(CommandError, match="Only the owner of the table agent_messages"):
            search_index("main", "--create")
