"""Every hint of `check_deploy` was tried: carried out, the finding is gone.

`TRIED` has the trial of each place in the code that makes a finding. One without a trial fails the last test here.
Trials of this file carry out what the hint says, with nothing but its text where it has commands.
"""

from __future__ import annotations

import ast
import io
import os
import re
import runpy
import shlex
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as ours_alone
from django.core.management import call_command
from django.db import connection
from procrastinate.contrib.django import app
from procrastinate.jobs import Status
from psycopg.conninfo import make_conninfo
from pytest_django.fixtures import Settings

from memadmin import environment
from memadmin.audit.models import AuditVerdict
from memadmin.audit.transparency import anchors, verification, verifier
from memadmin.audit.transparency.sequencer import Sequencer
from memadmin.deploy.checks import enforcement, operation, rights
from memadmin.deploy.checks.finding import APPLY, CheckFinding
from memadmin.deploy.roles import Roles
from memadmin.web import job_queue
from tests.agents import attach_main_store, run_sql
from tests.audit.events import record_events
from tests.builders import make_store
from tests.deploy import test_check_deploy as other_trials
from tests.deploy.connecting import bring_into_force, connected_as
from tests.deploy.test_system import test_checks_without_time_left_are_named as is_named
from tests.memories import test_without_vectors
from tests.ops import test_backup, test_pgbouncer
from tests.registry import test_check
from tests.web import test_replica
from tests.web.test_job_queue import DEAD, make_job, make_worker

pytestmark = pytest.mark.django_db

Check = Callable[[], Iterator[CheckFinding]]


def codes(check: Check) -> list[str]:
    return [finding.check for finding in check()]


def hint_of(check: Check, code: str) -> str:
    [finding] = [finding for finding in check() if finding.check == code]
    return finding.hint


# --- the audit log ----------------------------------------------------------------------------------------------------

on_the_log = pytest.mark.django_db(transaction=True)


@on_the_log
def test_a_worker_sequences_and_signs(anchored: None, later: Callable[[timedelta], None], settings: Settings) -> None:
    record_events(1)
    later(timedelta(minutes=4))
    assert "Check that a worker is running." in hint_of(operation.log, "log-unsequenced")
    key, settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = settings.SIGNING_KEY, b"", None
    Sequencer().step(is_last=True)
    assert "log-unsequenced" not in codes(operation.log)
    assert "MEMADMIN_SIGNING_KEY is set." in hint_of(operation.log, "log-unsigned")
    settings.SIGNING_KEY = key
    Sequencer().step(is_last=True)
    assert "log-unsigned" not in codes(operation.log)


@on_the_log
def test_a_worker_reaches_the_anchor(anchored: None, later: Callable[[timedelta], None]) -> None:
    record_events(1)
    later(timedelta(minutes=16))
    Sequencer().step(is_last=True)
    assert "a worker is running, and that it reaches the anchor" in hint_of(operation.log, "log-unanchored")
    anchors.publish()
    assert "log-unanchored" not in codes(operation.log)


@on_the_log
def test_a_file_is_an_anchor(
    empty_log: None, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    variable = re.findall(r"MEMADMIN_ANCHOR_\w+", hint_of(operation.log, "log-not-anchored"))[0]
    monkeypatch.setenv(variable, str(tmp_path / "anchor.jsonl"))
    settings.ANCHOR_PATH = environment.anchor_path(variable, None)
    assert "log-not-anchored" not in codes(operation.log)


@on_the_log
def test_the_command_creates_a_signing_key(
    anchored: None, empty_log: None, settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.SIGNING_KEY, settings.SIGNING_KEY_KEPT = b"", None
    hint = hint_of(operation.log, "log-signing-key")
    [variable], [command] = re.findall(r"MEMADMIN_\w+", hint), re.findall(r"`([^`]+)`", hint)
    made = subprocess.run(shlex.split(command), capture_output=True, check=True)
    (tmp_path / "key.pem").write_bytes(made.stdout)
    monkeypatch.setenv(f"{variable}_FILE", str(tmp_path / "key.pem"))
    settings.SIGNING_KEY = environment.signing_key(variable)
    assert "log-signing-key" not in codes(operation.log)


def carry_out_verify_audit(hint: str) -> None:
    assert "run verify_audit" in hint
    with suppress(SystemExit):
        call_command("verify_audit", stdout=io.StringIO())


@on_the_log
def test_the_log_is_verified_again(anchored: None, empty_log: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "BACKLOG_SECONDS", -1)  # for a first checkpoint, which nobody writes
    hint = hint_of(operation.log, "log-unverified")
    assert "a worker verifies it" in hint
    verification.verify()  # as its job does
    assert "log-unverified" not in codes(operation.log)
    AuditVerdict.objects.create(verdict="broken", size=0)
    carry_out_verify_audit(hint_of(operation.log, "log-broken"))
    assert "log-broken" not in codes(operation.log)


@on_the_log
def test_events_get_their_signature(anchored: None, empty_log: None, settings: Settings) -> None:
    record_events(1)
    AuditVerdict.objects.create(verdict="unsigned", size=0)
    hint = hint_of(operation.log, "log-was-unsigned")
    Sequencer().step(is_last=True)  # a worker with the key
    anchors.publish()
    carry_out_verify_audit(hint)
    assert "log-was-unsigned" not in codes(operation.log)


# --- workers and stores -----------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_starts_takes_over() -> None:
    assert "Start `worker`." in hint_of(operation.worker, "worker")
    async_to_sync(app.job_manager.register_worker)()  # what it does first
    assert "worker" not in codes(operation.worker)
    make_job("doing", since="10 minutes", worker=make_worker(DEAD))
    assert "Restart the worker." in hint_of(operation.worker, "jobs-stuck")
    async_to_sync(job_queue.recover_orphans)()  # what it does next
    assert "jobs-stuck" not in codes(operation.worker)


@pytest.mark.django_db(transaction=True)
def test_enough_workers_leave_no_job_overdue() -> None:
    worker = async_to_sync(app.job_manager.register_worker)()
    make_job(since="20 minutes")
    assert "enough workers are running" in hint_of(operation.worker, "jobs-overdue")
    job = async_to_sync(app.job_manager.fetch_job)(queues=None, worker_id=worker)
    assert job
    async_to_sync(app.job_manager.finish_job)(job, Status.SUCCEEDED, delete_job=True)
    assert "jobs-overdue" not in codes(operation.worker)


DAMAGES = {
    "trigger-disabled": "ALTER TABLE agent_sessions DISABLE TRIGGER memadmin_register_{pk}",
    "trigger-missing": "DROP TRIGGER memadmin_register_{pk} ON agent_sessions",
    "function-missing": "DROP FUNCTION memadmin_register_{pk} CASCADE",
    "function-changed": "ALTER FUNCTION memadmin_register_{pk}() SECURITY INVOKER",
    "index-missing": "DROP INDEX idx_agent_messages_session_time",
    "not-attached": "UPDATE sessions_app_sessionstore SET attached_at = NULL",
}


def carry_out_attach_store(hint: str, *roles: str) -> None:
    """The command that the hint names, with each role where it says so."""
    [(name, option)] = re.findall(r"[Rr]un attach_store ([\w-]+)( --agent-role)?", hint)
    given = [word for role in roles for word in (option.strip(), role)] if option else []
    call_command("attach_store", name, *given, stdout=io.StringIO())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_store_is_attached_again(agent_tables: None, damage: str) -> None:
    store = attach_main_store(agent_roles=["some_agent"])
    run_sql(DAMAGES[damage].format(pk=store.pk))
    found = list(operation.stores())
    assert found
    for hint in dict.fromkeys(finding.hint for finding in found):
        carry_out_attach_store(hint)
    assert list(operation.stores()) == []


@pytest.mark.django_db(transaction=True)
def test_the_roles_of_agents_are_named(agent_tables: None) -> None:
    attach_main_store()
    [finding] = operation.stores()
    carry_out_attach_store(finding.hint, "some_agent")
    assert list(operation.stores()) == []


def test_a_row_of_a_backup_is_put_back() -> None:
    run_sql("CREATE TEMPORARY TABLE backup ON COMMIT DROP AS SELECT * FROM memadmin_secret WHERE name = 'tombstones'")
    run_sql("DELETE FROM memadmin_secret WHERE name = 'tombstones'")
    assert "Restore this row from a backup." in hint_of(enforcement.tombstones, "tombstones")
    run_sql("INSERT INTO memadmin_secret SELECT * FROM backup")
    assert codes(enforcement.tombstones) == []


# --- roles that connect -----------------------------------------------------------------------------------------------


def test_who_connects_as_another_role_is_found_no_more(ours: Roles, settings: Settings, monkeypatch: Any) -> None:
    run_sql(f'CREATE ROLE "{ours["web"]}_owner" CREATEROLE IN ROLE "{ours["migrator"]}"')
    for role in ("postgres", ours["migrator"], f"{ours['web']}_owner"):
        with connected_as(role):
            # The test's own connection is another one of memadmin, as the administrator.
            [hint] = [finding.hint for finding in rights.own_roles() if finding.hint.startswith("memadmin connects")]
        assert APPLY in hint
        assert "let it connect as the role for the web server" in hint
        with connected_as(ours["web"]):
            assert codes(rights.own_roles) == []
    for role in ("nobody_knows_it", ours["auditor"]):
        monkeypatch.setenv("WORKERS", f"postgres://{role}:secret@host/console")
        settings.WORKER_DATABASE = environment.database("WORKERS")
        with connected_as(ours["web"]):
            found = [finding.hint for finding in rights.own_roles()]
        assert found
        assert all(APPLY in hint for hint in found)
        # The role that the statements make.
        monkeypatch.setenv("WORKERS", f"postgres://{ours['worker']}:secret@host/console")
        settings.WORKER_DATABASE = environment.database("WORKERS")
        with connected_as(ours["web"]):
            assert codes(rights.own_roles) == []


def test_large_objects_are_closed_to_everybody(ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    run_sql("GRANT EXECUTE ON FUNCTION lo_from_bytea(oid, bytea) TO PUBLIC")
    with connected_as(ours["web"]):
        [hint, _] = [finding.hint for finding in rights.ways_round()]
    assert "Run `db_roles --apply` as a superuser" in hint
    bring_into_force(ours)
    with connected_as(ours["web"]):
        assert list(rights.ways_round()) == []


def test_another_role_owns_the_agents_tables(ours: Roles) -> None:
    make_store(agent_roles=[ours["agents"]])
    run_sql(f'ALTER TABLE agent_sessions OWNER TO "{ours["agents"]}"')
    assert "Make another role the owner." in hint_of(rights.agents, "agents")
    run_sql(f'ALTER TABLE agent_sessions OWNER TO "{ours["migrator"]}"')
    assert codes(rights.agents) == []


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_settings_are_as_the_hints_say(settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def found() -> dict[str, str]:
        return {
            finding.check: finding.hint for check in (operation.transport, operation.sign_in) for finding in check()
        }

    settings.DEBUG, settings.IS_HTTPS, settings.SECOND_FACTOR_REQUIRED = True, False, False
    hints = found()
    assert list(hints) == ["debug", "https", "database", "second-factor"]
    as_said = {"DATABASE_URL": "postgres://memadmin@db.example/memadmin", "MEMADMIN_HTTPS": "yes"}
    for name, hint in zip(as_said, (hints["database"], hints["https"]), strict=True):
        assert name in hint
    for name in [name for name in os.environ if name.startswith(("MEMADMIN_", "DATABASE_URL"))]:
        monkeypatch.delenv(name)
    for name, value in {"MEMADMIN_DATA_DIR": str(tmp_path), **as_said}.items():
        monkeypatch.setenv(name, value)
    begun = runpy.run_path(str(settings.CHECKOUT_DIR / "memadmin" / "settings.py"))
    for name in ("DEBUG", "IS_HTTPS", "SECOND_FACTOR_REQUIRED"):
        setattr(settings, name, begun[name])
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", begun["DATABASES"]["default"]["ENGINE"])
    assert found() == {}


def test_the_folder_of_keys_is_there_and_closed(settings: Settings, tmp_path: Path) -> None:
    settings.SUBJECT_KEYS_DIR = tmp_path / "keys"
    [hint] = [finding.hint for finding in operation.subject_keys()]
    assert "Mount or create it, with mode 0700." in hint
    settings.SUBJECT_KEYS_DIR.mkdir(mode=0o700)
    assert hint not in [finding.hint for finding in operation.subject_keys()]
    settings.SUBJECT_KEYS_DIR.chmod(0o755)
    [hint] = [finding.hint for finding in operation.subject_keys() if "open to other users" in finding.hint]
    mode = re.findall(r"Set its mode to (\d+)\.", hint)[0]
    settings.SUBJECT_KEYS_DIR.chmod(int(mode, 8))
    assert hint not in [finding.hint for finding in operation.subject_keys()]


def test_statements_stay_out_of_the_servers_log(db: None) -> None:
    assert codes(operation.statements_in_logs) == [], "as the embedded server is set up"
    loud = {"log_min_error_statement": "error", "log_statement": "all", "log_min_duration_statement": "1000"}
    for name, value in loud.items():
        run_sql(f"SET LOCAL {name} = '{value}'")
    [finding] = operation.statements_in_logs()
    statements = re.findall(r"ALTER DATABASE \S+ SET (\w+) = ('\S+');", finding.hint)
    assert {name for name, _ in statements} == loud.keys()
    # What new connections begin with, for this one.
    for name, value in statements:
        run_sql(f"SET LOCAL {name} = {value}")
    assert codes(operation.statements_in_logs) == []


def test_a_role_may_see_replicas(ours: Roles) -> None:
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "dbname")}
    with psycopg.connect(make_conninfo(**reach, user="postgres", replication="database"), autocommit=True):
        with connected_as(ours["web"]):
            [hint] = [finding.hint for finding in operation.retention()]
        [statement] = re.findall(r"GRANT \w+ to", hint)
        run_sql(f'{statement} "{ours["web"]}"')
        with connected_as(ours["web"]):
            assert list(operation.retention()) == []


def test_columns_that_the_map_has_not_are_gone() -> None:
    run_sql("ALTER TABLE sessions_app_subject ADD COLUMN nickname text")
    assert codes(operation.data_map) == ["data-map"]
    run_sql("ALTER TABLE sessions_app_subject DROP COLUMN nickname")  # as a version that has it would be another one
    assert codes(operation.data_map) == []


# --- all of them have a trial -----------------------------------------------------------------------------------------

MAKERS = {"CheckFinding": 2, "AuditProblem": 1, "JobProblem": 1, "StoreProblem": 1}
"""What makes a finding or the sentence of one, with the index of the argument that is the text."""

MODULES = (
    *("memadmin/deploy/checks/__init__.py", "memadmin/deploy/checks/enforcement.py"),
    *("memadmin/deploy/checks/operation.py", "memadmin/deploy/checks/replica.py", "memadmin/deploy/checks/rights.py"),
    *("memadmin/audit/transparency/status.py", "memadmin/web/job_queue.py"),
    *("sessions_app/registry/checking.py", "sessions_app/registry/installed_triggers.py"),
)


def places() -> Iterator[tuple[str, str]]:
    """Each place that makes a finding: its function, and what of its text is in the code; `…` stands for the rest."""
    for path in MODULES:
        module = Path(path).stem if not path.endswith("__init__.py") else "checks"
        tree = ast.parse((Path(ours_alone.CHECKOUT_DIR) / path).read_text())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                for text in texts_in(function):
                    yield f"{module}.{function.name}", text


def texts_in(function: ast.FunctionDef) -> Iterator[str]:
    calls = [each for each in ast.walk(function) if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)]
    making = sorted((each for each in calls if name_of(each.func) in MAKERS), key=lambda each: each.lineno)
    before = function.lineno
    for call in making:
        text = call.args[MAKERS[name_of(call.func)]]
        # A variable may have been set in several branches, each a text of its own.
        assigned = [
            each.value
            for each in ast.walk(function)
            if isinstance(each, ast.Assign)
            and before <= each.lineno < call.lineno
            and name_of(each.targets[0]) in {name_of(part) for part in ast.walk(text)} - {""}
            and words_of(each.value).strip("… ")
        ]
        for value in assigned or [text]:
            yield words_of(value)
        before = call.lineno


def name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def words_of(node: ast.AST) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(words_of, parts))
        case ast.BoolOp(values=parts):
            return " ".join(map(words_of, parts))
        case _:
            return "…"


Trial = Callable[..., object]

of_roles = other_trials.test_every_hint_is_enough
of_triggers = other_trials.test_hints_about_functions_and_triggers_are_enough
of_stores, of_zones = test_check.TestWhatAttachRepairs, test_check.TestZones
attached_again = test_a_store_is_attached_again

TRIED: dict[tuple[str, str], tuple[Trial, ...]] = {
    ("checks.findings", "There was no time left"): (is_named,),
    ("enforcement.functions", "may call"): (of_triggers,),
    ("enforcement.functions", "any search_path"): (of_triggers,),
    ("enforcement.functions", "one of our names"): (of_triggers,),
    ("enforcement.triggers", "numbers of events"): (of_triggers,),
    ("enforcement.holds", "is missing"): (of_triggers,),
    ("enforcement.holds", "is disabled"): (of_triggers,),
    ("enforcement.tombstones", "Restore this row"): (test_a_row_of_a_backup_is_put_back,),
    ("enforcement._fault_of", "is missing"): (of_triggers,),
    ("enforcement._fault_of", "is disabled"): (of_triggers,),
    ("operation.log", "…"): (test_a_worker_sequences_and_signs,),
    ("operation.log", "No checkpoint"): (test_the_command_creates_a_signing_key,),
    ("operation.log", "found broken"): (test_the_log_is_verified_again,),
    ("operation.log", "had no signature"): (test_events_get_their_signature,),
    ("operation.log", "has not been verified"): (test_the_log_is_verified_again,),
    ("operation.data_map", "the data map does not say"): (test_columns_that_the_map_has_not_are_gone,),
    ("operation.worker", "No worker is running"): (test_a_worker_that_starts_takes_over,),
    ("operation.worker", "…"): (test_enough_workers_leave_no_job_overdue,),
    ("operation.pooler", "a cursor is unknown"): (test_pgbouncer.test_what_has_to_be_set_is_said_until_it_is,),
    ("operation.pooler", "not notified of new jobs"): (test_pgbouncer.test_what_has_to_be_set_is_said_until_it_is,),
    ("operation.retention", "pg_read_all_stats"): (test_a_role_may_see_replicas,),
    ("operation.stores", "…"): (attached_again, test_the_roles_of_agents_are_named),
    ("operation.vectors", "Run `memadmin migrate`"): (
        test_without_vectors.test_migrate_makes_vectors_of_the_column_when_it_can,
    ),
    ("operation.subject_keys", "…"): (test_the_folder_of_keys_is_there_and_closed,),
    ("operation.statements_in_logs", "to its own log"): (test_statements_stay_out_of_the_servers_log,),
    ("operation.backups", "could not archive"): (test_backup.test_the_runbook_with_a_base_backup,),
    ("operation.backups", "has no archive"): (test_backup.test_the_runbook_with_a_base_backup,),
    ("operation.sign_in", "MEMADMIN_SECOND_FACTOR"): (test_settings_are_as_the_hints_say,),
    ("operation.transport", "MEMADMIN_DEBUG"): (test_settings_are_as_the_hints_say,),
    ("operation.transport", "MEMADMIN_HTTPS"): (test_settings_are_as_the_hints_say,),
    ("operation.transport", "Set DATABASE_URL"): (test_settings_are_as_the_hints_say,),
    ("replica.primary", "names a standby"): (test_replica.test_a_standby_in_place_of_the_primary_is_found,),
    ("replica.replica", "does not respond"): (test_replica.test_one_that_was_promoted_or_is_gone_is_not_read_from,),
    ("replica.replica", "… …"): (test_replica.test_the_system_page_and_the_checks_say_how_it_is,),
    ("replica.replica", "max_standby_streaming_delay"): (
        test_replica.test_the_system_page_and_the_checks_say_how_it_is,
    ),
    ("replica.replica", "max_slot_wal_keep_size"): (test_replica.test_a_slot_without_a_limit_is_a_risk,),
    ("rights.own_roles", "may not sequence"): (test_who_connects_as_another_role_is_found_no_more,),
    ("rights._of_role", "has no such role"): (test_who_connects_as_another_role_is_found_no_more,),
    ("rights._of_role", "an administrator"): (test_who_connects_as_another_role_is_found_no_more,),
    ("rights._of_role", "… …, the owner of the audit log"): (test_who_connects_as_another_role_is_found_no_more,),
    ("rights._of_role", "who sets up roles"): (test_who_connects_as_another_role_is_found_no_more,),
    ("rights._of_role", "which can become"): (of_roles,),
    ("rights._of_role", "can create roles"): (of_roles,),
    ("rights.grants", "erased session writable"): (of_roles,),
    ("rights.grants", "where only the owner may"): (of_roles,),
    ("rights.grants", "only the database may set"): (of_roles,),
    ("rights.ways_round", "may create functions"): (of_roles,),
    ("rights.ways_round", "temporary tables"): (of_roles,),
    ("rights.ways_round", "session_replication_role"): (of_roles,),
    ("rights.ways_round", "is a member of"): (of_roles,),
    ("rights.ways_round", "large objects"): (test_large_objects_are_closed_to_everybody,),
    ("rights.role_settings", "begins each connection"): (of_roles,),
    ("rights.agents", "whom the fence cannot stop"): (of_roles,),
    ("rights.agents", "connect as one role"): (
        other_trials.test_agents_under_the_role_of_the_console_get_one_of_their_own,
    ),
    ("rights.agents", "has rights on our tables"): (of_roles,),
    ("rights.agents", "Make another role the owner"): (test_another_role_owns_the_agents_tables,),
    ("operation.search_index", "no search index"): (other_trials.test_a_large_store_without_a_search_index_is_named,),
    ("status._problems", "Events have waited"): (test_a_worker_sequences_and_signs,),
    ("status._problems", "no signed checkpoint"): (test_a_worker_sequences_and_signs,),
    ("status._problems", "Not anchored: "): (test_a_file_is_an_anchor,),
    ("status._problems", "Not anchored for"): (test_a_worker_reaches_the_anchor,),
    ("job_queue.problems", "dead worker"): (test_a_worker_that_starts_takes_over,),
    ("job_queue.problems", "enough workers"): (test_enough_workers_leave_no_job_overdue,),
    ("checking.check", "not registered"): (of_stores.test_sessions_without_a_registry_row,),
    ("checking._faults_of_fence", "It is not attached"): (attached_again,),
    ("checking._faults_of_fence", "did not finish"): (attached_again,),
    ("checking._faults_of_fence", "mode and should be in"): (of_stores.test_a_mode_that_differs,),
    ("checking._faults_of_fence", "… …"): (attached_again,),
    ("checking._faults_of_fence", "Not all writes"): (of_stores.test_another_condition_for_what_is_recorded,),
    ("checking._slow_or_wrong", "is invalid"): (of_stores.test_an_index_that_is_missing_or_invalid,),
    ("checking._slow_or_wrong", "has no index"): (attached_again,),
    ("checking._wrong_zone", "are off by"): (of_zones.test_what_agents_wrote_shows_a_wrong_zone,),
    ("checking._wrong_zone", "Agents write in the zone"): (
        of_zones.test_before_anything_is_written_the_configuration_tells,
    ),
    ("installed_triggers.faults_of", "The function … is missing."): (attached_again,),
    ("installed_triggers.faults_of", "The trigger … on … is missing."): (
        attached_again,
        of_stores.test_a_damaged_fence,
    ),
    ("installed_triggers.faults_of", "The function … is not"): (attached_again,),
    ("installed_triggers.faults_of", "is disabled"): (attached_again,),
    ("installed_triggers.faults_of", "The trigger … on … is not"): (of_stores.test_a_damaged_fence,),
}

NOT_TRIED = {
    ("checks.findings", "…"): "reasons not to serve, which tests/ops/test_health.py and of migrations have",
    ("checks.answered", "This check failed"): "quotes an error",
    ("operation.django", "…"): "texts of Django",
    ("operation.retention", "… See /retention/runs/."): "figures of runs, which are gone when a run catches up",
    ("replica.replica", "MB behind"): "says that it passes by itself",
    ("status._problems", "…"): "quotes an anchor that refused, or the verification that stopped the signing",
    ("job_queue.problems", "See the worker log"): "reports what happened within a day",
    ("checking._health_of_fenced", "…"): "quotes an error",
    ("checking.check", "…"): "quotes an error",
    ("checking._health_of_discovered", "…"): "quotes an error, or counts sessions that returned",
    (
        "checking._health_of_discovered",
        "they are not listed, and not erased",
    ): "in test_unreadable_times",
    ("checking._health_of_discovered", "It is not attached"): "the same as of stores with a fence",
    (
        "checking._faults_of_fence",
        "registry has lost its unique key",
    ): "names a migration, by which to repair it by hand",
    ("checking._slow_or_wrong", "may be empty"): "describes items that are not shown",
    ("checking._ids_running_out", "to bigint"): "a change of the agents' table",
}
"""Findings that quote, count or describe, with no command to carry out."""


def is_of(key: tuple[str, str], place: tuple[str, str]) -> bool:
    phrase, text = key[1], place[1]
    # One that is all from elsewhere is not also any other.
    is_quoted = not phrase.strip("… ")
    return key[0] == place[0] and (phrase == text if is_quoted else phrase in text)


def test_each_finding_has_a_trial_of_its_own() -> None:
    assert not TRIED.keys() & NOT_TRIED.keys()
    found = list(places())
    assert len(found) > 80
    lacking = [place for place in found if not any(is_of(key, place) for key in (*TRIED, *NOT_TRIED))]
    assert lacking == [], "These findings need a trial of their hint."
    for key, trials in TRIED.items():
        number = sum(is_of(key, place) for place in found)
        assert 0 < number <= len(trials), f"{key}: {number} places, {len(trials)} trials"
    for key in NOT_TRIED:
        assert any(is_of(key, place) for place in found), f"{key} is gone"
