"""Migrations: SQL is in files that run, triggers are those of the models, and no way back opens tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pgtrigger
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import DatabaseError, ProgrammingError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from django.db.models import Model

from memadmin import migrating
from memadmin.accounts.models import Approval
from memadmin.audit.log.triggers import Calling
from memadmin.retention.holds.guard import HOLD_TRIGGERS
from memadmin.retention.models import RetentionPolicy
from memadmin.web import health
from tests.agents import run_sql
from tests.people import person

FUNCTIONS = (
    "SELECT proname, prosrc FROM pg_proc WHERE proname LIKE 'memadmin%' AND pronamespace = 'public'::regnamespace"
)


def our_files(pattern: str) -> Iterator[Path]:
    for app in apps.get_app_configs():
        if app.name.startswith(("memadmin", "sessions_app", "memories_app")):
            yield from Path(app.path).glob(pattern)


def sql_files() -> dict[str, str]:
    return {f"{file.parent.parent.name}/{file.name}": file.read_text() for file in our_files("sql/*.sql")}


def made_functions(text: str) -> set[str]:
    return set(re.findall(r"CREATE (?:OR REPLACE )?FUNCTION (\w+)\(", text))


def runs_of_files() -> Counter[str]:
    """How many migrations run each file."""
    operations = [operation for each in MigrationLoader(None).disk_migrations.values() for operation in each.operations]
    return Counter(f"{each.app}/{each.name}" for each in operations if isinstance(each, migrating.RunFile))


def test_each_file_runs_and_one_that_runs_again_changes_no_rows() -> None:
    runs = runs_of_files()
    assert set(runs) == set(sql_files())
    for name, count in runs.items():
        statements = re.findall(r"^(?:CREATE|ALTER|DROP|GRANT|REVOKE)\b.*", sql_files()[name], re.MULTILINE)
        repeatable = ("CREATE OR REPLACE FUNCTION", "CREATE TABLE IF NOT EXISTS", "REVOKE ALL ON")
        assert count == 1 or all(each.startswith(repeatable) for each in statements), name


def test_each_function_is_made_in_one_file() -> None:
    made = Counter(name for text in sql_files().values() for name in made_functions(text))
    assert len(made) > 30
    assert set(made.values()) == {1}
    assert not [name for name, text in sql_files().items() if "DROP " in text]


def test_no_migration_has_sql_of_its_own() -> None:
    files = list(our_files("migrations/0*.py"))
    assert len(files) >= len(migrating.REPLACED)
    assert not [file for file in files if re.search("CREATE |ALTER |RunSQL", file.read_text())]


@pytest.mark.django_db
def test_functions_of_the_database_are_those_of_the_files() -> None:
    whole = "\n".join(sql_files().values())
    with connection.cursor() as cursor:
        cursor.execute(FUNCTIONS)
        found = dict(cursor.fetchall())
    assert set(found) == made_functions(whole)
    # A name that is asked for in any search_path has the schema before it.
    bodies = {name: body.replace("'public.audit_event'", "'%I.audit_event'") for name, body in found.items()}
    assert [name for name, body in bodies.items() if body not in whole] == []


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "app",
    ["audit", *(pytest.param(app, marks=pytest.mark.release) for app in ("accounts", "sessions_app", "memories_app"))],
)
def test_way_back_is_refused(app: str) -> None:
    with pytest.raises(CommandError, match=r"^The first migrations of \w+ cannot be reversed, .* drop the database"):
        call_command("migrate", app, "zero", verbosity=0)
    with connection.cursor() as cursor:
        assert "audit_event" in connection.introspection.table_names(cursor)
        assert "memories_app_memory" in connection.introspection.table_names(cursor)


# --- triggers ---------------------------------------------------------------------------------------------------------

TRIGGERS = """
SELECT c.relname, t.tgname, t.tgenabled::text, obj_description(t.oid, 'pg_trigger')
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE NOT t.tgisinternal AND c.relnamespace = 'public'::regnamespace
"""
"""The comment is pgtrigger's hash of the statements that made the trigger."""


def installed_triggers() -> set[tuple[str, str, str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        return {row for row in cursor.fetchall() if row[1].startswith("pgtrigger_")}


def declared_triggers() -> set[tuple[str, str, str, str]]:
    return {
        (model._meta.db_table, trigger.get_pgid(model), "A" if trigger.always else "O", trigger.compile(model).hash)
        for model in apps.get_models(include_auto_created=True)
        for trigger in getattr(model._meta, "triggers", ())
    }


@pytest.mark.django_db
def test_triggers_of_a_new_database_are_the_declared_ones() -> None:
    """Those of an upgraded one: tests/ops/test_last_release.py. `makemigrations` notices neither."""
    assert len(declared_triggers()) > 150
    assert installed_triggers() == declared_triggers()


@pytest.mark.django_db
def test_all_other_triggers_are_of_legal_holds_and_of_the_job_queue() -> None:
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        others = {(table, name) for table, name, _, _ in cursor.fetchall() if not name.startswith("pgtrigger_")}
    assert {each for each in others if not each[0].startswith("procrastinate_")} == set(HOLD_TRIGGERS)


def install(app: str, *models: str) -> None:
    state = MigrationLoader(connection).project_state()
    with connection.schema_editor() as editor:
        migrating.InstallTriggers(*models).database_forwards(app, editor, state, state)


def declare(monkeypatch: pytest.MonkeyPatch, model: type[Model], *triggers: Calling) -> None:
    monkeypatch.setattr(model._meta, "triggers", triggers)


@pytest.fixture
def given() -> list[Calling]:
    return list(RetentionPolicy._meta.triggers)  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_a_trigger_of_what_a_later_migration_makes_is_left_to_it(
    given: list[Calling], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = installed_triggers()
    declare(
        monkeypatch,
        RetentionPolicy,
        Calling("by_column", "memadmin_keep_default_policy()", before="UPDATE OF later", level=pgtrigger.Row),
        Calling("by_function", "memadmin_later()", before="UPDATE", level=pgtrigger.Row),
        *given,
    )
    install("retention")
    assert installed_triggers() == others
    run_sql("ALTER TABLE retention_retentionpolicy ADD COLUMN later integer")
    run_sql("CREATE FUNCTION memadmin_later() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'")
    install("retention", "RetentionPolicy")
    assert len(installed_triggers() - others) == 2
    assert installed_triggers() == declared_triggers()


@pytest.mark.django_db
def test_changed_triggers_are_replaced_and_undeclared_ones_dropped(
    given: list[Calling], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_default, *recording = given
    changed = Calling("keep_default", "memadmin_keep_default_policy()", before="INSERT", level=pgtrigger.Row)
    for triggers in ([changed, *recording], recording):
        declare(monkeypatch, RetentionPolicy, *triggers)
        assert installed_triggers() != declared_triggers()
        install("retention", "PolicyVersion", "LegalHold")
        assert installed_triggers() != declared_triggers()
        install("retention", "RetentionPolicy")
        assert installed_triggers() == declared_triggers()
    declare(monkeypatch, RetentionPolicy, keep_default, *recording)
    install("retention", "RetentionPolicy")
    assert installed_triggers() == declared_triggers()


@pytest.mark.django_db
def test_a_mistake_in_a_trigger_is_no_later_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch, RetentionPolicy, Calling("wrong", "memadmin_keep_default_policy(", before="UPDATE"))
    with pytest.raises(ProgrammingError, match="syntax error"):
        install("retention", "RetentionPolicy")
    with pytest.raises(LookupError, match=r"retention has no model retentionpolice here\."):
        install("retention", "RetentionPolice")


@pytest.mark.django_db
def test_guards_that_are_made_again_fire_for_replication_roles() -> None:
    guards = {each for each in installed_triggers() if each[2] == "A"}
    assert len(guards) == 5
    install("audit", "AuditEvent", "AuditLeaf")
    assert {each for each in installed_triggers() if each[2] == "A"} == guards


# --- databases from before the first migrations -----------------------------------------------------------------------


def applied() -> set[tuple[str, str]]:
    return {
        (app, name) for app, name in MigrationRecorder(connection).applied_migrations() if app in migrating.REPLACED
    }


def pretend(names: Iterable[tuple[str, str]]) -> None:
    """These are the migrations of our apps that this database has."""
    recorder = MigrationRecorder(connection)
    for app, name in applied():
        recorder.record_unapplied(app, name)
    for app, name in names:
        recorder.record_applied(app, name)


def test_all_our_apps_had_a_history() -> None:
    assert {file.parent.parent.name for file in our_files("migrations/0001*.py")} == set(migrating.REPLACED)
    first = {file.stem for file in our_files("migrations/000[12]*.py")}
    assert first == set(migrating.FIRST)
    assert not set(migrating.FIRST) & set(migrating.REPLACED.values())


@pytest.mark.django_db
def test_a_database_with_the_replaced_migrations_has_the_first_ones() -> None:
    first, before = applied(), {*migrating.REPLACED.items(), ("audit", "0001_log_functions")}
    # What later ones do is in the database, too.
    before |= {(app, name) for app, name in first if app in migrating.REPLACED and name not in migrating.FIRST}
    pretend(before)
    assert "home.0001_model_tables" in health.missing_migrations()
    out = StringIO()
    call_command("migrate", stdout=out)
    assert "No migrations to apply." in out.getvalue()
    # An older program, which still runs, finds its own.
    assert applied() == first | before
    assert health.missing_migrations() == ""


@pytest.mark.django_db
def test_a_new_database_whose_first_migrate_was_interrupted_goes_on() -> None:
    whole = applied()
    rest = {each for each in whole if each[0] in ("erasure", "retention") and each[1] != migrating.FIRST[0]}
    begun = whole - rest
    pretend(begun)
    migrating.record_first_migrations(connection)
    assert applied() == begun
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    assert {(migration.app_label, migration.name) for migration, _ in plan} == rest


@pytest.mark.django_db
@pytest.mark.parametrize(
    "names",
    [
        set(migrating.REPLACED.items()) - {("erasure", "0010_batch_reminders")},
        {*migrating.REPLACED.items(), ("erasure", "0009_shared_scans")} - {("erasure", "0010_batch_reminders")},
        {("audit", "0001_log_functions"), ("audit", "0006_note_rows"), ("accounts", "0005_account_access")},
    ],
    ids=["without the last of an app", "with the one before", "an older history"],
)
def test_database_of_an_unreleased_version_is_refused(names: set[tuple[str, str]]) -> None:
    pretend(names)
    with pytest.raises(CommandError) as refusal:
        call_command("migrate", verbosity=0)
    folder = connection.settings_dict.get("DATA_DIR")
    remedy = f"stop memadmin, delete the folder {folder}" if folder else "create an empty database"
    assert str(refusal.value) == (
        f"This database was made by an unreleased version of memadmin and cannot be migrated: {remedy}, and run the"
        " command again. Nothing was changed."
    )
    assert applied() == names


@pytest.mark.django_db
def test_a_file_takes_over_what_is_refused_before_and_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = (
        "INSERT INTO accounts_approval (id, kind, object_ref, digest, asked_by_id, decision, decided_at) VALUES"
        f" (gen_random_uuid(), 'role', gen_random_uuid(), '', {person('support').pk}, 'approved', now())"
    )
    monkeypatch.setattr(migrating, "sql_text", lambda app, name: decided)
    state = ProjectState()
    for without, is_refused in (((), True), (("memadmin_ask_approval",), False), ((), True)):
        operation = migrating.RunFile("accounts", "decided.sql", without=without)
        refused = pytest.raises(DatabaseError, match="by the person who acts") if is_refused else nullcontext()
        with refused, transaction.atomic(), connection.schema_editor() as editor:
            operation.database_forwards("accounts", editor, state, state)
    assert Approval.objects.get().decision == "approved"
