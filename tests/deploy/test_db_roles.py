"""`db_roles`: what it plans, who can run it, and what it leaves alone."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection

from memadmin.audit.models import AuditEvent
from memadmin.deploy import plan, steps
from memadmin.deploy.roles import Roles
from memadmin.embedded.server import server_for
from tests.agents import run_sql, value_of
from tests.builders import make_store
from tests.deploy.connecting import (
    AGENTS_TABLES,
    bring_into_force,
    connected_as,
    database,
    keep_to_ourselves,
    logged_in_as,
    our_roles,
    refusal,
)

pytestmark = pytest.mark.django_db


def command(roles: Roles, *arguments: str) -> str:
    said = io.StringIO()
    call_command("db_roles", *arguments, "--prefix", roles.prefix, stdout=said)
    return said.getvalue()


def test_nothing_is_missing_once_they_are_in_force(ours: Roles) -> None:
    assert plan.plan(ours) == []
    assert command(ours, "--print") == "-- Nothing is missing.\n"
    assert command(ours, "--apply").startswith("No change needed")


@pytest.mark.parametrize(
    ("damage", "repair"),
    [
        ("GRANT UPDATE ON audit_event TO {web}", 'GRANT SELECT ON TABLE "audit_event"'),
        ("GRANT UPDATE (type) ON audit_event TO {web}", 'REVOKE ALL ON TABLE "audit_event"'),
        ("GRANT INSERT (number) ON audit_event TO {worker}", 'REVOKE ALL ON TABLE "audit_event"'),
        ("GRANT SELECT ON auth_user TO PUBLIC", 'REVOKE ALL ON TABLE "auth_user"'),
        ("GRANT UPDATE (erased_at) ON sessions_app_sessionrecord TO {web}", '"sessions_app_sessionrecord" FROM PUBLIC'),
        ("REVOKE UPDATE (ticket) ON sessions_app_sessionrecord FROM {web}", '"ticket"'),
        ("REVOKE INSERT ON sessions_app_textsearch FROM {web}", '"sessions_app_textsearch"'),
        ("REVOKE USAGE ON SEQUENCE audit_verdict_id_seq FROM {worker}", "ON SEQUENCE audit_verdict_id_seq"),
        ("GRANT EXECUTE ON FUNCTION memadmin_note_rows() TO PUBLIC", "REVOKE ALL ON FUNCTION memadmin_note_rows()"),
        (
            "GRANT EXECUTE ON FUNCTION memadmin_actor(text, text, bigint) TO {agents}",
            "memadmin_actor(text,text,bigint)",
        ),
        ("REVOKE ALL ON FUNCTION memadmin_uuid7() FROM PUBLIC, {web}", "GRANT EXECUTE ON FUNCTION memadmin_uuid7()"),
        ("ALTER ROLE {web} CREATEROLE", "NOSUPERUSER NOCREATEDB NOCREATEROLE"),
        ("ALTER ROLE {web} RESET statement_timeout", "\"statement_timeout\" = '30s'"),
        ("ALTER ROLE {agents} SET row_security = off", 'ALTER ROLE {agents} RESET "row_security"'),
        ("ALTER ROLE {agents} SET default_transaction_read_only = on", 'RESET "default_transaction_read_only"'),
        ("ALTER ROLE {agents} IN DATABASE {database} SET row_security = off", "IN DATABASE {database} RESET"),
        ("ALTER ROLE {web} IN DATABASE {database} SET statement_timeout = 1", "IN DATABASE {database} RESET"),
        ("ALTER ROLE {web} SET statement_timeout = 1", "\"statement_timeout\" = '30s'"),
        (
            "GRANT EXECUTE ON FUNCTION lo_creat(int) TO PUBLIC",
            "REVOKE EXECUTE ON FUNCTION lo_creat(integer) FROM PUBLIC",
        ),
        ("GRANT {migrator} TO {web}", "REVOKE {migrator} FROM {web}"),
        ("ALTER TABLE sessions_app_subject OWNER TO CURRENT_USER", "OWNER TO {migrator}"),
        ("GRANT DELETE ON agent_messages TO {web}", 'REVOKE ALL ON TABLE "public"."agent_messages" FROM {web}'),
        ("REVOKE INSERT ON agent_messages FROM {agents}", 'ON TABLE "public"."agent_messages" TO {agents}'),
        ("GRANT CREATE ON SCHEMA public TO PUBLIC", 'REVOKE CREATE ON SCHEMA "public" FROM PUBLIC'),
    ],
)
def test_what_came_to_differ_is_put_right_again(ours: Roles, damage: str, repair: str) -> None:
    names = {kind: f'"{name}"' for kind, name in ours.names.items()} | {"database": database()}
    run_sql(damage.format(**names))
    planned = plan.plan(ours)
    assert repair.format(**names) in "\n".join(step.as_script() for step in planned)
    steps.run(planned)
    assert plan.plan(ours) == []


def test_printed_it_is_a_script_that_does_the_same() -> None:
    names = our_roles()
    keep_to_ourselves()
    run_sql(AGENTS_TABLES)
    script = command(names, "--print")
    assert value_of(f"SELECT count(*) FROM pg_roles WHERE rolname LIKE '{names.prefix}%'") == 0
    run_sql(script.replace("BEGIN;", "").replace("COMMIT;", ""))
    assert plan.plan(names) == []


def test_json_names_roles_and_statements() -> None:
    told = json.loads(command(our_roles(), "--print", "--json"))
    assert told["roles"]["web"] == our_roles()["web"]
    assert told["is_applied"] is False
    assert "CREATE ROLE" in told["steps"][0]["statements"][0]


@pytest.mark.django_db(transaction=True)
def test_it_is_recorded_when_something_changed(in_force: Roles) -> None:
    assert command(in_force, "--apply").startswith("Roles and rights set up: ")
    assert command(in_force, "--apply").startswith("No change needed")
    event = AuditEvent.objects.get(type="database_rights.changed")
    assert event.counters["statements"] > 50


@pytest.mark.django_db(transaction=True)
def test_who_may_not_learns_that_nothing_was_changed(in_force: Roles) -> None:
    bring_into_force(in_force)
    other = Roles(f"other_{in_force.prefix}")
    with (
        logged_in_as(in_force["worker"]),
        pytest.raises(CommandError, match=r"^Nothing was changed: permission denied"),
    ):
        command(other, "--apply")
    assert value_of(f"SELECT count(*) FROM pg_roles WHERE rolname LIKE '{other.prefix}%'") == 0


@pytest.mark.django_db(transaction=True)
def test_what_only_the_owner_of_the_agents_tables_can_grant_is_said(in_force: Roles) -> None:
    bring_into_force(in_force)
    run_sql(AGENTS_TABLES)
    with logged_in_as(in_force["migrator"]), pytest.raises(CommandError, match=r'TO "\w+agents"') as caught:
        command(in_force, "--apply")
    for statement in str(caught.value).splitlines()[1:]:
        run_sql(statement)
    assert plan.plan(in_force) == []


@pytest.mark.django_db(transaction=True)
def test_agent_that_changed_its_own_settings_does_not_keep_the_migrator_from_its_work(in_force: Roles) -> None:
    bring_into_force(in_force)
    with logged_in_as(in_force["agents"]):
        run_sql("ALTER ROLE CURRENT_USER SET row_security = off")
    run_sql(f'REVOKE SELECT ON sessions_app_subject FROM "{in_force["web"]}"')
    with logged_in_as(in_force["migrator"]), pytest.raises(CommandError, match=r"has to run the rest") as caught:
        command(in_force, "--apply")
    [statement] = str(caught.value).splitlines()[1:]
    run_sql(statement)
    assert plan.plan(in_force) == []


@pytest.mark.django_db(transaction=True)
def test_login_that_is_only_a_member_changes_nobody_but_itself(in_force: Roles) -> None:
    """The way of docs/database-roles.md: the rights are with a role that cannot log in."""
    bring_into_force(in_force)
    agents, login = in_force["agents"], f"bot_of_{in_force.prefix}"
    run_sql(f'ALTER ROLE "{agents}" NOLOGIN; CREATE ROLE "{login}" LOGIN IN ROLE "{agents}"')
    try:
        with logged_in_as(login):
            assert "permission denied" in refusal(f'ALTER ROLE "{agents}" SET row_security = off')
            run_sql(f'SET ROLE "{agents}"')
            # As the role itself it may; and nobody begins a connection with it.
            run_sql(f'ALTER ROLE "{agents}" SET row_security = off')
        for role in (login, in_force["web"]):
            with logged_in_as(role):
                assert value_of("SHOW row_security") == "on"
        assert any("RESET" in text for step in plan.plan(in_force) for text in step.as_text)
        assert "LOGIN" not in "".join(text for step in plan.plan(in_force) for text in step.as_text)
    finally:
        run_sql(f'DROP ROLE "{login}"')


def test_after_a_migration_the_migrator_needs_no_administrator(ours: Roles) -> None:
    with connected_as(ours["migrator"]):
        run_sql(
            "CREATE TABLE again (LIKE sessions_app_textsearch INCLUDING ALL);"
            "DROP TABLE sessions_app_textsearch; ALTER TABLE again RENAME TO sessions_app_textsearch"
        )
    with connected_as(ours["web"]):
        assert "permission denied" in refusal("SELECT FROM sessions_app_textsearch")
    with connected_as(ours["migrator"]):
        planned = bring_into_force(ours)
    assert [step.purpose for step in planned] == ["Rights on sessions_app_textsearch"]
    with connected_as(ours["web"]):
        assert refusal("SELECT FROM sessions_app_textsearch") == ""


def test_a_strangers_function_of_our_name_gets_no_rights_of_ours() -> None:
    names, stranger = our_roles(), f"stranger_to_{connection.settings_dict['NAME']}"
    run_sql(f'CREATE ROLE "{stranger}" LOGIN; GRANT CREATE ON SCHEMA public TO "{stranger}"')
    with connected_as(stranger):
        run_sql(
            "CREATE FUNCTION memadmin_trap() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM audit_detail'"
        )
    bring_into_force(names)
    assert value_of("SELECT proowner::regrole::text FROM pg_proc WHERE proname = 'memadmin_trap'") == stranger
    with connected_as(stranger):
        assert "permission denied" in refusal("SELECT memadmin_trap()")


def test_who_could_make_tables_before_still_can_but_no_agent_beside_ours() -> None:
    names = our_roles()
    neighbour, agent = (f"{who}_of_{connection.settings_dict['NAME']}" for who in ("neighbour", "agent"))
    run_sql(f'CREATE ROLE "{neighbour}" LOGIN; CREATE ROLE "{agent}" LOGIN')
    keep_to_ourselves()
    run_sql(f'GRANT CONNECT ON DATABASE {database()} TO "{neighbour}", "{agent}"')
    run_sql(f"GRANT TEMPORARY ON DATABASE {database()} TO PUBLIC; GRANT CREATE ON SCHEMA public TO PUBLIC")
    make_store(agent_roles=[agent])
    bring_into_force(names)
    with connected_as(neighbour):
        assert refusal("CREATE TEMP TABLE mine (a int)") == ""
        assert refusal("CREATE TABLE mine (a int)") == ""
    with connected_as(agent):
        assert "permission denied" in refusal("CREATE TABLE mine (a int)")


def test_raw_edits_are_given_when_asked_for(ours: Roles) -> None:
    for raw_edits in (False, True, False):
        bring_into_force(ours, raw_edits=raw_edits)
        with connected_as(ours["web"]):
            assert refusal("SELECT FROM agent_messages") == ""
            assert bool(refusal("DELETE FROM agent_messages")) is not raw_edits
            assert bool(refusal("UPDATE agent_messages SET message_data = ''")) is not raw_edits


# --- from nothing, on a database where nobody but its makers is a superuser -------------------------------------------


RUNS_COMMANDS = """
import io
import json
import sys
from contextlib import redirect_stdout

from memadmin.__main__ import main

for line in sys.stdin:
    sys.argv = ["manage.py", *json.loads(line)]
    with redirect_stdout(io.StringIO()) as said:
        main()
    print(json.dumps(said.getvalue()), flush=True)
"""
"""As `manage.py` does with each of them; loaded once, which takes longer than most commands."""


class Commands:
    """Management commands under one database role."""

    def __init__(self, role: str, data_dir: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNS_COMMANDS],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "memadmin.settings",
                "MEMADMIN_DATA_DIR": str(data_dir),
                "MEMADMIN_DATABASE_ROLE": role,
            },
            cwd=Path(settings.CHECKOUT_DIR),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def run(self, *arguments: str) -> str:
        """What the command wrote. Fails when it failed; its complaint is on stderr."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps(arguments), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        assert answer, arguments
        said: str = json.loads(answer)
        return said


@pytest.mark.release
def test_a_managed_database_from_nothing_to_its_first_event(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The steps of docs/database-roles.md, by programs: one of each role."""
    server = server_for(tmp_path_factory.mktemp("managed"))
    host = server.ensure_running().socket_dir
    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as maker:
        maker.execute("CREATE ROLE boss LOGIN CREATEROLE")
        maker.execute("CREATE DATABASE memadmin OWNER boss")
    with psycopg.connect(host=host, user="postgres", dbname="memadmin") as maker:
        # Where the database is somebody's service, its administrators may do this themselves.
        maker.execute("CREATE EXTENSION vector")
    with psycopg.connect(host=host, user="boss", dbname="memadmin") as boss:
        boss.execute(AGENTS_TABLES + "; CREATE INDEX ON agent_messages (session_id, created_at)")

    with Commands("boss", server.data_dir) as bosses:
        bosses.run("migrate", "--verbosity=0")
        assert bosses.run("db_roles", "--apply").startswith("Roles and rights set up")
        with psycopg.connect(host=host, user="boss", dbname="memadmin") as boss:
            boss.execute("ALTER ROLE memadmin_web RESET statement_timeout")
        assert bosses.run("db_roles", "--apply").startswith("Roles and rights set up")
    with Commands("memadmin_migrator", server.data_dir) as migrators:
        assert migrators.run("migrate", "--verbosity=0") == ""
        migrators.run("attach_store", "main", "--agent-role", "memadmin_agents")
        assert migrators.run("db_roles", "--apply").startswith("No change needed")
    with psycopg.connect(host=host, user="memadmin_agents", dbname="memadmin") as agent:
        agent.execute("INSERT INTO agent_sessions (session_id) VALUES ('chat-1')")
    with Commands("memadmin_worker", server.data_dir) as workers:
        taken: dict[str, Any] = json.loads(workers.run("sequence_audit", "--once", "--json"))
        assert taken["sequenced"] > 5
        assert taken["checkpoint"] == taken["size"]
        assert json.loads(workers.run("verify_audit", "--json"))["verdict"] in ("ok", "unanchored")
    with psycopg.connect(host=host, user="memadmin_web", dbname="memadmin") as web:
        assert web.execute("SELECT count(*) FROM sessions_app_sessionrecord").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            web.execute("DELETE FROM audit_event")
    server.leave()
