"""`check_deploy` is silent about what is well, and says what is wrong with what it is wrong about."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import ProgrammingError, transaction
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from memadmin import environment
from memadmin.audit.models import AuditVerdict
from memadmin.audit.transparency import anchors
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.deploy import checks
from memadmin.deploy.checks import enforcement, operation, rights
from memadmin.deploy.checks.finding import APPLY, CheckFinding
from memadmin.deploy.roles import INSERT_ONLY, Roles
from memadmin.deploy.steps import fetch
from memadmin.retention.holds.guard import HOLD_TRIGGERS
from sessions_app.models import SessionStore
from sessions_app.stores.sqlalchemy.word_index import SqlWordIndex
from tests.agents import attach_main_store, run_sql, second_connection, value_of
from tests.audit.events import record_events
from tests.builders import make_store
from tests.deploy.connecting import bring_into_force, connected_as, database, logged_in_as

pytestmark = pytest.mark.django_db

Check = Callable[[], Iterator[CheckFinding]]


def hints(check: Check, level: str = "error") -> list[str]:
    return [finding.hint for finding in check() if finding.level == level]


# --- roles and grants -------------------------------------------------------------------------------------------------

OF_THE_DATABASE = (
    rights.own_roles,
    rights.grants,
    rights.ways_round,
    rights.role_settings,
    rights.agents,
    enforcement.functions,
    enforcement.triggers,
)


def test_all_is_well_when_the_roles_are_in_force(ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    with connected_as(ours["web"]):
        assert [finding for check in OF_THE_DATABASE for finding in check()] == []


def test_an_administrator_or_an_owner_as_the_application_is_found(ours: Roles) -> None:
    assert "an administrator of the database, who can rewrite" in hints(rights.own_roles)[0]
    with connected_as(ours["migrator"]):
        assert "the owner of the audit log" in hints(rights.own_roles)[0]
    run_sql(f'GRANT "{ours["migrator"]}" TO "{ours["web"]}"')
    with connected_as(ours["web"]):
        assert "which can become" in hints(rights.own_roles)[0]
    run_sql(f'REVOKE "{ours["migrator"]}" FROM "{ours["web"]}"; ALTER ROLE "{ours["web"]}" CREATEROLE')
    with connected_as(ours["web"]):
        assert "which can create roles" in hints(rights.own_roles)[0]


@pytest.mark.parametrize(
    ("role", "wrong"),
    [
        ("postgres", "The worker connects as postgres, an administrator"),
        ("{migrator}", "the owner of the audit log"),
        ("{web}", ""),
        ("{auditor}", "may not sequence audit events"),
        ("nobody_knows_it", "has no such role"),
        ("{worker}", ""),
    ],
)
def test_the_workers_own_role_is_looked_at(
    ours: Roles, monkeypatch: pytest.MonkeyPatch, settings: Settings, role: str, wrong: str
) -> None:
    monkeypatch.setenv("WORKERS", f"postgres://{role.format(**ours.names)}:secret@host/console")
    settings.WORKER_DATABASE = environment.database("WORKERS")
    with connected_as(ours["web"]):
        found = hints(rights.own_roles)
    assert any(wrong in hint for hint in found) if wrong else found == []


@pytest.mark.django_db(transaction=True)
def test_another_process_under_the_administrator_is_found(in_force: Roles) -> None:
    bring_into_force(in_force)
    with second_connection(application_name="memadmin"), logged_in_as(in_force["web"]):
        assert "Another process of memadmin is connected as postgres" in hints(rights.own_roles)[0]
    with second_connection(application_name="psql"), logged_in_as(in_force["web"]):
        assert hints(rights.own_roles) == []


WIDER = {
    "GRANT UPDATE ON audit_event TO {web}": "may UPDATE on audit_event",
    "GRANT UPDATE (type) ON audit_event TO {web}": "may UPDATE on audit_event",
    "GRANT INSERT ON audit_event TO {web}": "may INSERT on audit_event",
    "GRANT INSERT (number) ON audit_event TO {worker}": "may set number of an event, which only the database may set",
    "GRANT DELETE ON audit_leaf TO {worker}": "may DELETE on audit_leaf",
    "GRANT TRUNCATE ON audit_checkpoint TO {auditor}": "may TRUNCATE on audit_checkpoint",
    "GRANT UPDATE ON sessions_app_sessionrecord TO {web}": "may make an erased session writable again",
    "GRANT TRIGGER ON audit_node TO PUBLIC": "may TRIGGER on audit_node",
    "GRANT pg_write_all_data TO {web}": "is a member of pg_write_all_data",
    "GRANT pg_execute_server_program TO {agents}": "is a member of pg_execute_server_program",
    "GRANT CREATE ON SCHEMA public TO {agents}": "may create functions in public",
    "GRANT TEMPORARY ON DATABASE {database} TO {web}": "may create temporary tables",
    "GRANT SET ON PARAMETER session_replication_role TO {web}": "may SET session_replication_role",
    "GRANT SELECT ON auth_user TO {agents}": "which has rights on our tables (auth_user)",
    "GRANT INSERT ON audit_event TO {agents}": "which has rights on our tables (audit_event)",
    "ALTER ROLE {agents} SUPERUSER": "an administrator of the database, whom the fence cannot stop",
}


@pytest.mark.parametrize("grant", WIDER)
def test_rights_that_are_wider_are_found(grant: str, ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    names = {kind: f'"{name}"' for kind, name in ours.names.items()}
    run_sql(grant.format(database=database(), **names))
    with connected_as(ours["web"]):
        found = [hint for check in (rights.grants, rights.ways_round, rights.agents) for hint in hints(check)]
    assert any(WIDER[grant] in hint for hint in found), found


OF_ALL_ROLES = (rights.own_roles, rights.grants, rights.ways_round, rights.role_settings, rights.agents)
STATEMENT = re.compile(r"\b(?:REVOKE|ALTER ROLE)\b[^;]*(?=;)|\bALTER ROLE \S+(?: IN DATABASE \S+)? RESET \w+")


def carry_out(hint: str, ours: Roles) -> None:
    """As an administrator does who has nothing but the hint."""
    if APPLY in hint:
        bring_into_force(ours)
    for statement in STATEMENT.findall(hint):
        with suppress(ProgrammingError), transaction.atomic():  # "if it is a role of your own"
            run_sql(statement)


MENDED = (
    *WIDER,
    "GRANT {migrator} TO {web}",
    "CREATE ROLE go_between; GRANT {migrator} TO go_between; GRANT go_between TO {web}",
    "CREATE ROLE giver; GRANT {migrator} TO giver WITH ADMIN OPTION; GRANT {migrator} TO {web} GRANTED BY giver",
    "GRANT CREATE ON SCHEMA public TO PUBLIC",
    "CREATE ROLE makers; GRANT CREATE ON SCHEMA public TO makers; GRANT makers TO {agents}",
    "CREATE ROLE writers; GRANT pg_write_all_data TO writers; GRANT writers TO {agents}",
    "ALTER ROLE {agents} SET statement_timeout = 1",
    "ALTER ROLE {web} SET row_security = off",
    "ALTER ROLE {web} CREATEROLE",
)


@pytest.mark.parametrize("damage", MENDED)
def test_every_hint_is_enough(damage: str, ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    names = {kind: f'"{name}"' for kind, name in ours.names.items()}
    run_sql(damage.format(database=database(), **names))
    with connected_as(ours["web"]):
        found = [finding for check in OF_ALL_ROLES for finding in check()]
    assert found
    for finding in found:
        carry_out(finding.hint, ours)
    with connected_as(ours["web"]):
        assert [finding for check in OF_ALL_ROLES for finding in check()] == []


def test_agents_under_the_role_of_the_console_get_one_of_their_own(
    ours: Roles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "Roles", lambda: ours)
    store = make_store(agent_roles=[ours["web"]])
    with connected_as(ours["web"]):
        [hint] = hints(rights.agents)
    assert hint.startswith(f"Agents and memadmin connect as one role, {ours['web']}")
    carry_out(hint, ours)
    [role] = re.findall(r"attach_store NAME --agent-role (\S+)`", hint)
    store.agent_roles = [role]  # as the command declares it
    store.save()
    with connected_as(ours["web"]):
        assert hints(rights.agents) == []


STOPS = {
    "row_security = off": "row_security = off",
    "default_transaction_read_only = on": "default_transaction_read_only = on",
    "search_path = nowhere": "search_path = nowhere",
    "statement_timeout = 1": "statement_timeout = 1",
    "lock_timeout = '20ms'": "lock_timeout = 20ms",
    "statement_timeout = '30s'": "",
    "work_mem = '8MB'": "",
}


@pytest.mark.parametrize("setting", STOPS)
def test_settings_with_which_one_agent_stops_all_are_found(setting: str, ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    for where in ("", f" IN DATABASE {database()}"):
        with connected_as(ours["agents"]):
            run_sql(f"ALTER ROLE CURRENT_USER{where} SET {setting}")
        with connected_as(ours["web"]):
            found = hints(rights.role_settings)
        assert [STOPS[setting] in hint for hint in found] == [True] * bool(STOPS[setting])
        assert not found or f"{where} RESET {setting.split()[0]}".replace('"', "") in found[0]
        run_sql(f'ALTER ROLE "{ours["agents"]}"{where} RESET ALL')


def test_large_objects_of_the_application_and_of_agents_are_found(ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    run_sql("GRANT EXECUTE ON FUNCTION lo_from_bytea(oid, bytea) TO PUBLIC")
    with connected_as(ours["web"]):
        found = hints(rights.ways_round, "warning")
    assert [hint.split()[0] for hint in found] == sorted([ours["web"], ours["agents"]])


def test_agents_that_own_their_tables_are_told(ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    run_sql(f'ALTER TABLE agent_sessions OWNER TO "{ours["agents"]}"')
    [told] = hints(rights.agents, "warning")
    assert "owns public.agent_sessions and could remove the fence" in told


# --- functions and triggers -------------------------------------------------------------------------------------------


def test_functions_that_everybody_may_call_or_that_are_not_ours_are_found(ours: Roles) -> None:
    run_sql("GRANT EXECUTE ON FUNCTION memadmin_actor(text, text, bigint) TO PUBLIC")
    run_sql("ALTER FUNCTION memadmin_stamp_event() RESET search_path")
    run_sql("CREATE FUNCTION memadmin_trap() RETURNS void LANGUAGE sql SECURITY DEFINER AS ''")
    run_sql(f'ALTER FUNCTION memadmin_trap() OWNER TO "{ours["agents"]}"')
    found = hints(enforcement.functions)
    assert any("Every role that can connect may call memadmin_actor" in hint for hint in found)
    assert any("memadmin_stamp_event() runs with its owner's rights and any search_path" in hint for hint in found)
    assert any("memadmin_trap() has one of our names and belongs to" in hint for hint in found)


@pytest.mark.parametrize("table", INSERT_ONLY)
@pytest.mark.parametrize("damage", ["DISABLE", "ENABLE", "ENABLE REPLICA", "DROP"])
def test_guards_that_do_not_stand_are_found(table: str, damage: str) -> None:
    name = value_of(f"SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND tgname LIKE '%guard%'")
    run_sql(f"DROP TRIGGER {name} ON {table}" if damage == "DROP" else f"ALTER TABLE {table} {damage} TRIGGER {name}")
    [found] = hints(enforcement.triggers)
    assert name in found
    assert table in found
    assert "it can be rewritten" in found


def test_the_trigger_of_the_log_that_is_off_is_found() -> None:
    trigger = value_of(
        "SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_event'::regclass AND tgname LIKE 'pgtrigger_stamp%'"
    )
    run_sql(f"ALTER TABLE audit_event DISABLE TRIGGER {trigger}")
    [found] = hints(enforcement.triggers)
    assert "clients choose time and role of an event, and it is not sequenced" in found


def test_triggers_of_legal_holds_are_all_looked_for() -> None:
    assert hints(enforcement.holds) == []
    installed = fetch("SELECT tgrelid::regclass::text, tgname FROM pg_trigger WHERE tgname ~ '^hold_'")
    assert set(installed) == set(HOLD_TRIGGERS)
    run_sql("DROP TRIGGER hold_keeps_merge ON sessions_app_subject")
    run_sql("ALTER TABLE memories_app_signal DISABLE TRIGGER hold_refuses_deletion")
    missing, disabled = hints(enforcement.holds)
    assert "hold_keeps_merge of sessions_app_subject is missing" in missing
    assert "Run ALTER TABLE memories_app_signal ENABLE TRIGGER hold_refuses_deletion;" in disabled


OF_ENFORCEMENT = (enforcement.functions, enforcement.triggers, enforcement.holds)
GUARD, STAMP = "pgtrigger_guard_%", "pgtrigger_stamp_%"


def trigger_of(table: str, pattern: str) -> str:
    return str(
        value_of(f"SELECT tgname FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND tgname LIKE '{pattern}'")
    )


def dropped(table: str, pattern: str) -> str:
    return f"DROP TRIGGER {trigger_of(table, pattern)} ON {table}"


def switched(table: str, pattern: str, how: str) -> str:
    return f"ALTER TABLE {table} {how} TRIGGER {trigger_of(table, pattern)}"


DAMAGED: dict[str, Callable[[], str]] = {
    "a function that everybody may call": lambda: "GRANT EXECUTE ON FUNCTION memadmin_stamp_event() TO PUBLIC",
    "a function with any search path": lambda: "ALTER FUNCTION memadmin_actor(text, text, bigint) RESET search_path",
    "a function of somebody else": lambda: (
        "CREATE ROLE maker; CREATE FUNCTION memadmin_trap(uuid, text) RETURNS void LANGUAGE sql SECURITY DEFINER SET"
        " search_path = pg_temp AS ''; ALTER FUNCTION memadmin_trap(uuid, text) OWNER TO maker;"
        " REVOKE ALL ON FUNCTION memadmin_trap(uuid, text) FROM PUBLIC"
    ),
    "a guard that is gone": lambda: dropped("audit_leaf", GUARD),
    "a guard that is off": lambda: switched("audit_leaf", GUARD, "DISABLE"),
    "a guard that replication passes": lambda: switched("audit_event", GUARD, "ENABLE"),
    "a trigger of the log that is off": lambda: switched("audit_event", STAMP, "DISABLE"),
    "numbers of events": lambda: "ALTER TABLE audit_event ALTER number SET GENERATED BY DEFAULT",
    "all triggers of a table": lambda: "ALTER TABLE sessions_app_sessionrecord DISABLE TRIGGER USER",
    "triggers of holds that are gone": lambda: (
        "DROP TRIGGER hold_keeps_merge ON sessions_app_subject;"
        " DROP TRIGGER hold_refuses_deletion ON sessions_app_sessionrecord"
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_hints_about_functions_and_triggers_are_enough(damage: str, ours: Roles) -> None:
    run_sql(DAMAGED[damage]())
    found = [finding for check in OF_ENFORCEMENT for finding in check()]
    assert found
    for hint in dict.fromkeys(finding.hint for finding in found):
        if APPLY in hint:
            bring_into_force(ours)
        for trigger in re.findall(r"`pgtrigger install (\S+)`", hint):
            call_command("pgtrigger", "install", trigger, stdout=io.StringIO())
        for path in re.findall(r"Run (memadmin/\S+\.sql)", hint):
            run_sql((settings.CHECKOUT_DIR / path).read_text())
        for statement in re.findall(r"\b(?:ALTER (?:TABLE|FUNCTION)|DROP FUNCTION) [^;]*(?=;)", hint):
            run_sql(statement)
    assert [finding for check in OF_ENFORCEMENT for finding in check()] == []


def test_a_missing_key_of_tombstones_is_found() -> None:
    assert hints(enforcement.tombstones) == []
    run_sql("DELETE FROM memadmin_secret WHERE name = 'tombstones'")
    assert "erased sessions and subjects can come back" in hints(enforcement.tombstones)[0]


def test_triggers_that_keep_erased_subjects_out_are_looked_for() -> None:
    run_sql("ALTER TABLE sessions_app_sessionrecord DISABLE TRIGGER ALL")
    found = hints(enforcement.triggers)
    assert [hint for hint in found if "erased sessions can be written again" in hint]
    assert [hint for hint in found if "data about erased subjects can be stored again" in hint]


def test_triggers_that_do_not_record_are_found() -> None:
    run_sql("ALTER TABLE auth_user DISABLE TRIGGER ALL")
    found = hints(enforcement.triggers)
    assert sum("auth_user is disabled: changes to it are not recorded" in hint for hint in found) >= 4
    run_sql("ALTER TABLE auth_user_groups DISABLE TRIGGER ALL")
    assert len(hints(enforcement.triggers)) > len(found)


def test_numbers_that_a_client_may_choose_are_found() -> None:
    run_sql("ALTER TABLE audit_event ALTER number SET GENERATED BY DEFAULT")
    assert "may choose the numbers" in hints(enforcement.triggers)[0]


# --- the log and what works on it -------------------------------------------------------------------------------------


def codes(check: Check, level: str = "error") -> list[str]:
    return [finding.check for finding in check() if finding.level == level]


@pytest.mark.django_db(transaction=True)
def test_events_without_a_place_for_more_than_ten_seconds(anchored: None, later: Callable[[timedelta], None]) -> None:
    record_events(1)
    assert codes(operation.log) == []
    later(timedelta(seconds=4))
    assert codes(operation.log) == []
    later(timedelta(seconds=11))
    assert codes(operation.log) == ["log-unsequenced"]


@pytest.mark.django_db(transaction=True)
def test_events_without_an_anchor_for_more_than_fifteen_minutes(
    anchored: None, later: Callable[[timedelta], None]
) -> None:
    record_events(1)
    later(timedelta(minutes=14))
    Sequencer().step(is_last=True)
    assert codes(operation.log) == []
    later(timedelta(minutes=16))
    assert codes(operation.log) == ["log-unanchored"]
    anchors.publish()
    assert codes(operation.log) == []


@pytest.mark.django_db(transaction=True)
def test_no_anchor_at_all(empty_log: None) -> None:
    [found] = hints(operation.log)
    assert found.startswith("Not anchored: the database owner could rewrite this log. Set MEMADMIN_ANCHOR_PATH")


@pytest.mark.django_db(transaction=True)
def test_no_signing_key(anchored: None, empty_log: None, settings: Settings) -> None:
    assert codes(operation.log) == []
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    assert codes(operation.log) == ["log-signing-key"]


@pytest.mark.django_db(transaction=True)
def test_the_key_is_the_workers_alone(anchored: None, empty_log: None, settings: Settings) -> None:
    """Who looks from the web server, which has none, sees that somebody signs."""
    record_events(1)
    Sequencer().step(is_last=True)
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    assert codes(operation.log) == []


@pytest.mark.django_db(transaction=True)
def test_a_log_that_was_found_broken_or_was_not_looked_at(anchored: None, empty_log: None) -> None:
    assert codes(operation.log, "warning") == ["log-unverified"]
    AuditVerdict.objects.create(verdict="ok", size=0)
    assert codes(operation.log, "warning") == []
    run_sql("UPDATE audit_verdict SET at = now() - interval '3 days'")
    assert codes(operation.log, "warning") == ["log-unverified"]
    AuditVerdict.objects.create(verdict="unsigned", size=0)
    assert codes(operation.log, "warning") == ["log-was-unsigned"]
    AuditVerdict.objects.create(verdict="epoch", size=0)
    assert codes(operation.log, "warning") == codes(operation.log) == []
    AuditVerdict.objects.create(verdict="broken", size=0)
    assert codes(operation.log) == ["log-broken"]


def test_a_worker_has_to_run() -> None:
    assert "No worker is running" in hints(operation.worker)[0]
    run_sql("INSERT INTO procrastinate_workers DEFAULT VALUES")
    assert hints(operation.worker) == []
    run_sql("UPDATE procrastinate_workers SET last_heartbeat = now() - interval '2 minutes'")
    assert "No worker is running" in hints(operation.worker)[0]


@pytest.mark.django_db(transaction=True)
def test_a_fence_that_is_off_is_found(agent_tables: None) -> None:
    store = attach_main_store(agent_roles=["some_agent"])
    assert list(operation.stores()) == []
    run_sql(f"ALTER TABLE agent_sessions DISABLE TRIGGER memadmin_register_{store.pk}")
    [found] = operation.stores()
    assert (found.level, found.check) == ("error", "store-main")
    assert "is disabled" in found.hint


def test_a_large_store_without_a_search_index_is_named(
    kept_main_store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(operation.search_index()) == []
    run_sql("UPDATE pg_class SET reltuples = 1900000 WHERE oid = 'agent_messages'::regclass")
    [found] = operation.search_index()
    assert (found.level, found.check) == ("warning", "search-index")
    assert "about 1,900,000 items" in found.hint
    assert "search_index main --create" in found.hint
    state = SqlWordIndex.state
    monkeypatch.setattr(SqlWordIndex, "state", lambda index: replace(state(index), is_possible=False))
    assert list(operation.search_index()) == [], "none can be built on a partitioned table"
    monkeypatch.setattr(SqlWordIndex, "state", state)
    call_command("search_index", "main", "--create", stdout=io.StringIO())
    assert list(operation.search_index()) == []


def test_stores_whose_agents_roles_nobody_said_are_told() -> None:
    assert [finding.level for finding in operation.stores()] == ["error"]


def test_backups_are_told_as_far_as_the_database_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no archive of its write-ahead log" in hints(operation.backups, "warning")[0]
    for row, expected in (
        (("on", True, now(), False), [("error", "backups")]),
        (("on", False, None, False), []),
        (("off", False, None, True), []),
    ):
        monkeypatch.setattr(operation, "fetch", lambda query, row=row: [row])
        assert [(finding.level, finding.check) for finding in operation.backups()] == expected


# --- settings ---------------------------------------------------------------------------------------------------------


def test_a_password_alone_is_not_enough(settings: Settings) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    assert hints(operation.sign_in) == []
    settings.SECOND_FACTOR_REQUIRED = False
    assert "MEMADMIN_SECOND_FACTOR is optional" in hints(operation.sign_in)[0]


def test_nothing_travels_in_the_clear(settings: Settings) -> None:
    settings.IS_HTTPS, settings.DEBUG = True, False
    assert hints(operation.transport) == []
    settings.IS_HTTPS, settings.DEBUG = False, True
    assert codes(operation.transport) == ["debug", "https"]


def test_what_django_says_is_in_it(settings: Settings) -> None:
    settings.AGENT_SESSIONS_TABLE = settings.AGENT_MESSAGES_TABLE
    assert "memadmin.E001" in codes(operation.django)
    assert not any(finding.check in operation.OF_HTTPS for finding in operation.django())


# --- the command ------------------------------------------------------------------------------------------------------


def run_command(*arguments: str) -> tuple[int, str]:
    said = io.StringIO()
    try:
        call_command("check_deploy", *arguments, stdout=said)
    except SystemExit as end:
        return int(str(end.code)), said.getvalue()
    return 0, said.getvalue()


def test_it_ends_with_1_and_its_json_has_the_keys_that_scripts_rely_on() -> None:
    code, said = run_command("--json")
    found = json.loads(said)["findings"]
    assert code == 1
    assert {frozenset(finding) for finding in found} == {frozenset({"level", "check", "hint"})}
    assert {finding["level"] for finding in found} == {"error", "warning"}
    assert {"roles", "worker", "https", "second-factor"} <= {finding["check"] for finding in found}
    code, said = run_command()
    assert code == 1
    assert said.startswith("error: ")
    assert "error: second-factor: Sign-in needs a password only" in said


def test_it_ends_with_0_when_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def harmless() -> Iterator[CheckFinding]:
        yield CheckFinding("warning", "tea", "It is getting cold.")

    monkeypatch.setattr(checks, "OF_DATABASE", (harmless,))
    monkeypatch.setattr(checks, "OF_SETTINGS", ())
    assert run_command() == (0, "warning: tea: It is getting cold.\n")
    monkeypatch.setattr(checks, "OF_DATABASE", ())
    assert run_command() == (0, "No problems found.\n")


@pytest.mark.django_db(transaction=True)
def test_a_deployment_as_it_should_be_has_no_error(
    in_force: Roles, empty_log: None, anchored: None, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach_main_store(agent_roles=[in_force["agents"]])
    bring_into_force(in_force)
    settings.IS_HTTPS = settings.SECOND_FACTOR_REQUIRED = True
    # The browser's tests set it, because their driver brings an event loop of its own.
    monkeypatch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)
    run_sql("INSERT INTO procrastinate_workers DEFAULT VALUES")
    with logged_in_as(in_force["web"]):
        assert [finding for finding in checks.findings() if finding.level == "error"] == []
        code, _ = run_command("--json")
    assert code == 0


def test_without_its_tables_the_rest_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "reasons_not_to_serve", lambda: ["The database is not responding."])
    found = checks.findings()
    assert {"roles", "worker"} & {finding.check for finding in found} == set()
    assert CheckFinding("error", "database", "The database is not responding.") in found


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_looked_at_is_a_finding() -> None:
    def broken_check() -> Iterator[CheckFinding]:
        run_sql("SELECT nonsense")
        yield from ()

    [finding] = checks.answered(broken_check)
    assert (finding.level, finding.check) == ("error", "broken-check")
    assert "nonsense" in finding.hint
