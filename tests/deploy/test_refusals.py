"""What each role of the database cannot do, tried as that role; and that with one right too many it can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from django.db import connection, transaction

from memadmin import audit
from memadmin.audit.log import types
from memadmin.audit.models import AuditEvent
from memadmin.deploy.roles import APPLICATION, INSERT_ONLY, OF_AGENTS, SIGNING_IN, Roles, our_tables
from tests.agents import run_sql
from tests.deploy.connecting import bring_into_force, connected_as, in_a_command, logged_in_as, refusal

pytestmark = pytest.mark.django_db

TRIED = types.declare("test_roles.tried", "Only tests try this.")

WEB, WORKER, AUDITOR, AGENTS = EVERYBODY = ("web", "worker", "auditor", "agents")
REASONS = (
    "permission denied",
    "must be owner",
    "must be able to SET ROLE",
    "must be superuser or have privileges of the pg_",
)
GUARDED = "The audit log is insert-only"


@dataclass(frozen=True, slots=True)
class Forgery:
    """A statement, who must be refused it, and the right too many with which it would go through."""

    what: str
    statement: str
    too_much: str
    kinds: tuple[str, ...] = EVERYBODY


def event(**more: str) -> str:
    """An INSERT of an event that also names columns that are not the client's."""
    values = {"type": "'test_roles.tried'", "actor_kind": "'person'", "actor_ref": "gen_random_uuid()", **more}
    return (
        f"INSERT INTO audit_event ({', '.join(values)}) OVERRIDING SYSTEM VALUE VALUES ({', '.join(values.values())})"
    )


def on_the_log() -> Iterator[Forgery]:
    columns = {"audit_event": "outcome = 'failed'", "audit_anchor": "receipt = 'x'"}
    for table in INSERT_ONLY:
        change = columns.get(table, "root = ''" if table == "audit_checkpoint" else "hash = ''")
        yield Forgery(f"rewrite {table}", f"UPDATE {table} SET {change}", f"GRANT UPDATE ON {table} TO {{role}}")
        yield Forgery(f"delete from {table}", f"DELETE FROM {table}", f"GRANT DELETE ON {table} TO {{role}}")
        yield Forgery(f"empty {table}", f"TRUNCATE {table}", f"GRANT TRUNCATE ON {table} TO {{role}}")
        owner = f"ALTER TABLE {table} OWNER TO {{role}}"
        yield Forgery(f"switch off the guard of {table}", f"ALTER TABLE {table} DISABLE TRIGGER USER", owner)
        yield Forgery(f"alter {table}", f"ALTER TABLE {table} ADD COLUMN more int", owner)
        yield Forgery(f"drop {table}", f"DROP TABLE {table} CASCADE", owner)
        if table != "audit_event":
            give, grant = f"INSERT INTO {table} SELECT * FROM {table}", f"GRANT SELECT, INSERT ON {table} TO {{role}}"
            yield Forgery(f"write to {table}", give, grant, (WEB, AUDITOR, AGENTS))


FORGERIES = [
    *on_the_log(),
    Forgery("choose a number", event(number="99"), "GRANT INSERT ON audit_event TO {role}"),
    Forgery("choose a time", event(at="'2001-01-01'"), "GRANT INSERT ON audit_event TO {role}"),
    Forgery("choose a role", event(role_ref="gen_random_uuid()"), "GRANT INSERT ON audit_event TO {role}"),
    Forgery("pass for a verb", event(cause="gen_random_uuid()"), "GRANT INSERT ON audit_event TO {role}"),
    Forgery("record", event(), "GRANT INSERT ON audit_event TO {role}", (AUDITOR, AGENTS)),
    Forgery(
        "name an actor",
        "SELECT memadmin_actor('person', 'x', 1)",
        "GRANT EXECUTE ON FUNCTION memadmin_actor(text, text, bigint) TO {role}",
        (AUDITOR, AGENTS),
    ),
    Forgery(
        "note rows that never changed",
        "SELECT memadmin_record_rows('a.b', 'c.d', '{{}}', '{{}}', 1, NULL)",
        "GRANT EXECUTE ON FUNCTION memadmin_record_rows(text, text, uuid[], uuid[], bigint, text) TO {role}",
    ),
    Forgery(
        "skip triggers",
        "SET session_replication_role = replica",
        "GRANT SET ON PARAMETER session_replication_role TO {role}",
    ),
    Forgery(
        "read sessions",
        "SELECT session_key, session_data FROM django_session",
        "GRANT SELECT ON django_session TO {role}",
        (WORKER, AUDITOR, AGENTS),
    ),
    Forgery(
        "read password hashes",
        "SELECT username, password FROM auth_user",
        "GRANT SELECT ON auth_user TO {role}",
        (WORKER, AUDITOR, AGENTS),
    ),
    *(
        Forgery(
            f"read {table}", f"SELECT * FROM {table}", f"GRANT SELECT ON {table} TO {{role}}", (WORKER, AUDITOR, AGENTS)
        )
        for table in SIGNING_IN
    ),
    Forgery(
        "add a provider that lets anybody sign in",
        "INSERT INTO socialaccount_socialapp (provider, provider_id, name, client_id, secret, key, settings)"
        " VALUES ('openid_connect', 'mine', '', '', '', '', '{{}}')",
        "GRANT INSERT ON socialaccount_socialapp TO {role}",
    ),
    Forgery("become the owner", "SET ROLE {migrator}", "GRANT {migrator} TO {role}"),
    Forgery("make a role", "CREATE ROLE one_role_more", "ALTER ROLE {role} CREATEROLE"),
    Forgery("make a table", "CREATE TABLE mine (a int)", "GRANT CREATE ON SCHEMA public TO {role}"),
    Forgery(
        "make a temporary table", "CREATE TEMP TABLE mine (a int)", "GRANT TEMPORARY ON DATABASE {database} TO {role}"
    ),
    Forgery("make a schema", "CREATE SCHEMA mine", "GRANT CREATE ON DATABASE {database} TO {role}"),
    Forgery(
        "be called instead of a function of ours",
        "CREATE FUNCTION memadmin_actor(text, name) RETURNS uuid LANGUAGE sql AS 'SELECT gen_random_uuid()'",
        "GRANT CREATE ON SCHEMA public TO {role}",
    ),
    Forgery(
        "take over a function",
        "CREATE OR REPLACE FUNCTION memadmin_refuse_change() RETURNS trigger LANGUAGE plpgsql"
        " AS 'BEGIN RETURN NULL; END'",
        "GRANT CREATE ON SCHEMA public TO {role}; ALTER FUNCTION memadmin_refuse_change() OWNER TO {role}",
    ),
    Forgery(
        "put a trigger on the log",
        "CREATE TRIGGER mine BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION memadmin_refuse_change()",
        "GRANT TRIGGER ON audit_event TO {role}",
    ),
    Forgery(
        "switch recording off",
        "ALTER TABLE sessions_app_subject DISABLE TRIGGER USER",
        "ALTER TABLE sessions_app_subject OWNER TO {role}",
    ),
    Forgery(
        "switch the fence off",
        "ALTER TABLE agent_sessions DISABLE TRIGGER USER",
        "ALTER TABLE agent_sessions OWNER TO {role}",
    ),
    Forgery(
        "run a program", "COPY (SELECT 1) TO PROGRAM 'cat > /dev/null'", "GRANT pg_execute_server_program TO {role}"
    ),
    Forgery("rewrite details", "UPDATE audit_detail SET details = ''", "GRANT UPDATE ON audit_detail TO {role}"),
    Forgery("erase details", "DELETE FROM audit_detail", "GRANT DELETE ON audit_detail TO {role}"),
    Forgery(
        "erase what an event says is erased",
        "SELECT memadmin_erase_details(gen_random_uuid())",
        "GRANT EXECUTE ON FUNCTION memadmin_erase_details(uuid) TO {role}",
        (AUDITOR, AGENTS),
    ),
    Forgery("erase who somebody was", "DELETE FROM audit_actor", "GRANT DELETE ON audit_actor TO {role}"),
    Forgery("pass for somebody", "UPDATE audit_actor SET label = 'x'", "GRANT UPDATE ON audit_actor TO {role}"),
    Forgery(
        "clear the queue",
        "DELETE FROM audit_pending",
        "GRANT SELECT, DELETE ON audit_pending TO {role}",
        (WEB, AUDITOR, AGENTS),
    ),
    Forgery(
        "delete a fence",
        "DELETE FROM sessions_app_sessionrecord",
        "GRANT DELETE ON sessions_app_sessionrecord TO {role}",
        (WEB, AUDITOR, AGENTS),
    ),
    Forgery(
        "lift a fence",
        "UPDATE sessions_app_sessionrecord SET erased_at = NULL",
        "GRANT UPDATE ON sessions_app_sessionrecord TO {role}",
        (WEB, AUDITOR, AGENTS),
    ),
    Forgery(
        "point a fence elsewhere",
        "UPDATE sessions_app_sessionrecord SET session_id = 'x'",
        "GRANT UPDATE ON sessions_app_sessionrecord TO {role}",
        (WEB, AUDITOR, AGENTS),
    ),
    Forgery(
        "hide a discarded write",
        "DELETE FROM sessions_app_fenceoutbox",
        "GRANT DELETE ON sessions_app_fenceoutbox TO {role}",
        (WEB, AUDITOR, AGENTS),
    ),
    Forgery(
        "change a conversation",
        "UPDATE agent_messages SET message_data = ''",
        "GRANT UPDATE ON agent_messages TO {role}",
        (WEB, AUDITOR),
    ),
    Forgery(
        "delete a conversation",
        "DELETE FROM agent_messages",
        "GRANT DELETE ON agent_messages TO {role}",
        (WEB, AUDITOR),
    ),
    Forgery("read conversations", "SELECT FROM agent_messages", "GRANT SELECT ON agent_messages TO {role}", (AUDITOR,)),
    Forgery(
        "read second factors",
        "SELECT FROM mfa_authenticator",
        "GRANT SELECT ON mfa_authenticator TO {role}",
        (WORKER, AUDITOR, AGENTS),
    ),
    Forgery(
        "make a superuser of the console",
        "UPDATE auth_user SET is_superuser = true",
        "GRANT UPDATE ON auth_user TO {role}",
        (WORKER, AUDITOR, AGENTS),
    ),
    Forgery(
        "read who waits for what",
        "SELECT FROM procrastinate_periodic_defers",
        "GRANT SELECT ON procrastinate_periodic_defers TO {role}",
        (AUDITOR, AGENTS),
    ),
    Forgery(
        "read the registry",
        "SELECT FROM sessions_app_sessionrecord",
        "GRANT SELECT ON sessions_app_sessionrecord TO {role}",
        (AUDITOR, AGENTS),
    ),
]


def words(ours: Roles, kind: str) -> dict[str, str]:
    quote = connection.ops.quote_name
    return {
        "role": quote(ours[kind]),
        "migrator": quote(ours["migrator"]),
        "database": quote(connection.settings_dict["NAME"]),
    }


def by_a_right(reason: str) -> bool:
    return any(words in reason for words in REASONS)


@pytest.mark.parametrize("kind", EVERYBODY)
def test_a_role_is_refused_what_is_not_its_work(kind: str, ours: Roles) -> None:
    audit.record(TRIED, details={"reason": "it"})
    with connected_as(ours[kind]):
        reasons = {
            forgery.what: refusal(forgery.statement.format(**words(ours, kind)))
            for forgery in FORGERIES
            if kind in forgery.kinds
        }
    assert {what: reason for what, reason in reasons.items() if not by_a_right(reason)} == {}


@pytest.mark.parametrize("kind", EVERYBODY)
def test_broken_variant_one_right_too_many_lets_each_of_these_through(kind: str, ours: Roles) -> None:
    """What the log's guards then still refuse is refused by them, who stand behind the rights."""
    audit.record(TRIED, details={"reason": "it"})
    still_refused = {}
    for forgery in FORGERIES:
        if kind not in forgery.kinds:
            continue
        run_sql("SAVEPOINT widened")
        run_sql(forgery.too_much.format(**words(ours, kind)))
        with connected_as(ours[kind]), in_a_command() if kind in APPLICATION else nullcontext():
            reason = refusal(forgery.statement.format(**words(ours, kind)))
        run_sql("ROLLBACK TO widened")
        if reason and not (reason.startswith(GUARDED) and any(table in forgery.what for table in INSERT_ONLY)):
            still_refused[forgery.what] = reason
    assert still_refused == {}


@pytest.mark.parametrize("kind", APPLICATION)
def test_broken_variant_a_right_on_the_whole_table_lets_numbers_be_forged(kind: str, ours: Roles) -> None:
    """Which is why rights to insert are given by columns."""
    run_sql(f'GRANT INSERT ON audit_event TO "{ours[kind]}"')
    with connected_as(ours[kind]):
        run_sql(event(number="4711"))
    assert AuditEvent.objects.filter(number=4711).exists()


def test_time_and_role_are_the_databases_word_even_then(ours: Roles) -> None:
    run_sql(f'GRANT INSERT ON audit_event TO "{ours["web"]}"')
    with connected_as(ours["web"]):
        run_sql(event(number="4711", at="'2001-01-01'", role_ref="gen_random_uuid()"))
    forged = AuditEvent.objects.get(number=4711)
    assert forged.at.year > 2001
    assert forged.role_ref == forged.actor_ref


@pytest.mark.parametrize("kind", [AUDITOR, AGENTS])
def test_nothing_of_ours_is_theirs_to_change(kind: str, ours: Roles) -> None:
    """What agents may add is tried in tests/memories/test_gate.py."""
    with connected_as(ours[kind]):
        for table in our_tables():
            for statement in (
                f"DELETE FROM {table}",
                f"TRUNCATE {table}",
                f"INSERT INTO {table} DEFAULT VALUES",
            ):
                if not (kind == AGENTS and table in OF_AGENTS and statement.startswith("INSERT")):
                    assert "permission denied" in refusal(statement), statement


def test_auditors_read_the_log_and_nothing_else(ours: Roles) -> None:
    with connected_as(ours[AUDITOR]):
        readable = {table for table in our_tables() if not refusal(f"SELECT FROM {table}")}
    assert readable == {table for table in our_tables() if table.startswith("audit_")}
    assert len(readable) == 9


def test_agents_read_nothing_of_ours_but_memories(ours: Roles) -> None:
    """Of which row policies show them what was approved; see tests/memories/test_gate.py."""
    with connected_as(ours[AGENTS]):
        assert [table for table in our_tables() if not refusal(f"SELECT FROM {table}")] == ["memories_app_memory"]


def test_broken_variant_a_table_that_was_opened_to_everybody_is_seen(ours: Roles) -> None:
    run_sql("GRANT SELECT ON sessions_app_subject TO PUBLIC")
    with connected_as(ours[AGENTS]):
        readable = [table for table in our_tables() if not refusal(f"SELECT FROM {table}")]
    assert readable == ["memories_app_memory", "sessions_app_subject"]


def test_the_owner_too_meets_the_guard(ours: Roles) -> None:
    audit.record(TRIED)
    with connected_as(ours["migrator"]):
        for statement in ("UPDATE audit_event SET type = 'x.y'", "DELETE FROM audit_event", "TRUNCATE audit_event"):
            assert refusal(statement).startswith(GUARDED)


# --- the statements that an insert-only log must survive, each on a connection that the role itself opened ------------

STATEMENTS = {
    "rewrite": "UPDATE audit_event SET reason_code = 'forged'",
    "delete": "DELETE FROM audit_event",
    "empty": "TRUNCATE audit_event",
    "switch the guard off": "ALTER TABLE audit_event DISABLE TRIGGER USER",
    "name a number": event(number="99").replace(" OVERRIDING SYSTEM VALUE", ""),
    "name a number all the same": event(number="98"),
}


def tries(role: str, *, before: str = "") -> dict[str, str]:
    """Why each of the statements is refused to who logs in as a role; their effect is undone."""
    with logged_in_as(role) if role else nullcontext(), transaction.atomic():
        if before:
            run_sql(before)
        reasons = {what: refusal(statement) for what, statement in STATEMENTS.items()}
        transaction.set_rollback(True)
    return reasons


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", APPLICATION)
def test_the_six_statements_are_refused_to_the_application(kind: str, in_force: Roles) -> None:
    bring_into_force(in_force)
    reasons = tries(in_force[kind])
    assert "cannot insert a non-DEFAULT value" in reasons.pop("name a number")
    assert [reason for reason in reasons.values() if not by_a_right(reason)] == []
    assert len(reasons) == 5


@pytest.mark.django_db(transaction=True)
def test_broken_variant_rights_on_the_table_leave_two_of_them_to_be_refused_by_nothing(in_force: Roles) -> None:
    """What an application usually has: all rights on the table, which is its own."""
    bring_into_force(in_force)
    run_sql(f'GRANT ALL ON audit_event TO "{in_force["web"]}"')
    assert tries(in_force["web"])["name a number all the same"] == ""
    run_sql(f'ALTER TABLE audit_event OWNER TO "{in_force["web"]}"')
    reasons = tries(in_force["web"])
    assert reasons["switch the guard off"] == reasons["name a number all the same"] == ""
    assert reasons["rewrite"].startswith(GUARDED)


@pytest.mark.django_db(transaction=True)
def test_the_guard_stands_where_triggers_are_skipped(in_force: Roles) -> None:
    """As replication does with those that are not ENABLE ALWAYS; it takes a superuser to come so far."""
    bring_into_force(in_force)
    reasons = tries("", before="SET LOCAL session_replication_role = replica")
    assert all(reasons[what].startswith(GUARDED) for what in ("rewrite", "delete", "empty"))


@pytest.mark.django_db(transaction=True)
def test_whom_nothing_in_the_database_stops(in_force: Roles) -> None:
    """A superuser and the owner switch the guard off and rewrite: an anchor outside shows it (test_attacks)."""
    bring_into_force(in_force)
    for role in ("", in_force["migrator"]):
        reasons = tries(role, before="ALTER TABLE audit_event DISABLE TRIGGER USER")
        assert reasons["rewrite"] == reasons["delete"] == ""
