"""Tables of the SDK that nobody connected are found by how they look."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from sessions_app import registry
from sessions_app.services.store_config import declare_store
from tests.agents import attach_main_store, make_agent_tables, run_sql

OTHERS = """
CREATE SCHEMA "Agents";
CREATE TABLE "Agents".talks (session_id text PRIMARY KEY, created_at timestamp, updated_at timestamp, tenant text);
CREATE TABLE "Agents".said (
    id bigint PRIMARY KEY, session_id text REFERENCES "Agents".talks ON DELETE CASCADE, message_data text,
    created_at timestamp
);
CREATE TABLE "Agents".orders (id bigint PRIMARY KEY, session_id text REFERENCES "Agents".talks, created_at timestamp)
"""


def test_nothing_is_found_where_nothing_is(agent_tables: None) -> None:
    assert registry.unconnected_tables() == []


def test_the_main_tables_are_found_until_they_are_declared(agent_tables: None) -> None:
    make_agent_tables()
    (found,) = registry.unconnected_tables()
    assert found.command == "attach_store main"
    attach_main_store()
    assert registry.unconnected_tables() == []


def test_tables_in_another_schema_are_shown_with_the_command_that_connects_them(
    agent_tables: None, operator: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    attach_main_store()
    run_sql(OTHERS)
    (found,) = registry.unconnected_tables()
    assert (found.sessions, found.messages) == ("Agents.talks", "Agents.said")
    page = operator.get(reverse("sessions:stores"))
    assert "attach_store agents-talks --sessions-table Agents.talks --messages-table Agents.said" in page.text
    call_command("check_stores", as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["unconnected"] == [
        {"sessions_table": "Agents.talks", "messages_table": "Agents.said", "kind": "sqlalchemy"}
    ]

    call_command("attach_store", "others", "--sessions-table", "Agents.talks", "--messages-table", "Agents.said")
    assert registry.unconnected_tables() == []


OF_LIBRARIES = """
CREATE SCHEMA "Agents";
CREATE TABLE "Agents".bots (
    session_id text PRIMARY KEY, agent_id text, user_id text, memory jsonb, agent_data jsonb, user_data jsonb,
    session_data jsonb, created_at bigint, updated_at bigint
);
CREATE TABLE "Agents".runs_of_agno (
    session_id text PRIMARY KEY, session_type text, user_id text, session_data jsonb, agent_data jsonb, summary jsonb,
    created_at bigint, updated_at bigint
);
CREATE TABLE "Agents".remembered (
    id text PRIMARY KEY, user_id text, memory jsonb, created_at timestamptz, updated_at timestamptz
);
CREATE TABLE "Agents".notes (
    id text PRIMARY KEY, user_id text, memory text, author text, created_at timestamptz, updated_at timestamptz
)
"""


def test_tables_of_other_libraries_are_told_by_their_columns(
    agent_tables: None, operator: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    attach_main_store()
    run_sql(OF_LIBRARIES)
    found = {tables.sessions: tables.command for tables in registry.unconnected_tables()}
    assert found == {
        "Agents.bots": "attach_store agents-bots --kind phidata --table Agents.bots",
        "Agents.runs_of_agno": "attach_store agents-runs_of_agno --kind agno --table Agents.runs_of_agno",
        "Agents.remembered": "attach_store agents-remembered --kind phidata --table Agents.remembered",
    }
    page = operator.get(reverse("sessions:stores"))
    assert "looks like a table of phidata but belongs to no store." in page.text
    assert "attach_store agents-runs_of_agno --kind agno --table Agents.runs_of_agno" in page.text
    call_command("check_stores")
    assert "Agents.bots looks like a table of phidata and belongs to no store. Run attach_" in capsys.readouterr().out

    declare_store("bots", kind="phidata", options={"table": "Agents.bots"})
    assert "Agents.bots" not in {tables.sessions for tables in registry.unconnected_tables()}


def test_a_proposed_name_is_free_and_leads_to_a_form_that_is_filled_in(
    agent_tables: None, operator: Client, administrator: Client
) -> None:
    attach_main_store()
    run_sql(OF_LIBRARIES)
    declare_store("agents-bots", kind="sqlite", options={"path": "/none/bots.db"})
    assert "agents-bots-2" in {tables.name for tables in registry.unconnected_tables()}
    link = f"{reverse('sessions:connect-kind', args=['phidata'])}?name=agents-bots-2&amp;table=Agents.bots"
    assert link in administrator.get(reverse("sessions:stores")).text
    assert "Connect it here" not in operator.get(reverse("sessions:stores")).text

    page = administrator.get(link.replace("&amp;", "&"))
    assert 'value="agents-bots-2"' in page.text
    assert 'value="Agents.bots"' in page.text


def test_a_form_takes_only_its_own_fields_from_an_address_and_escapes_them(administrator: Client) -> None:
    address = reverse("sessions:connect-kind", args=["agno"])
    page = administrator.get(address, {"table": '"><b>bold</b>', "other": "of nobody", "csrfmiddlewaretoken": "given"})
    assert "<b>bold" not in page.text
    assert "&lt;b&gt;bold" in page.text
    assert "of nobody" not in page.text
    assert 'value="given"' not in page.text
