"""Migrations: SQL is in files that run, nothing is missing, and there is no way back that opens tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib.postgres.operations import AddIndexConcurrently, RemoveIndexConcurrently
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from memadmin import migrating
from tests.agents import run_sql

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


def test_each_file_runs_and_one_that_runs_again_only_replaces_functions() -> None:
    runs = runs_of_files()
    assert set(runs) == set(sql_files())
    for name, count in runs.items():
        statements = re.findall(r"^(?:CREATE|ALTER|DROP|GRANT|REVOKE)\b.*", sql_files()[name], re.MULTILINE)
        repeatable = ("CREATE OR REPLACE FUNCTION", "REVOKE ALL ON FUNCTION")
        assert count == 1 or all(each.startswith(repeatable) for each in statements), name


def test_each_function_is_made_in_one_file() -> None:
    made = Counter(name for text in sql_files().values() for name in made_functions(text))
    assert len(made) > 30
    assert set(made.values()) == {1}
    assert not [name for name, text in sql_files().items() if "DROP " in text]


def test_no_migration_has_sql_of_its_own() -> None:
    files = list(our_files("migrations/0*.py"))
    assert len(files) > 10
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
@pytest.mark.parametrize("app", ["audit", "accounts", "sessions_app", "memories_app"])
def test_way_back_is_refused(app: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Indexes that are built while agents write cannot be changed in the transaction of this test.
    for operation in (AddIndexConcurrently, RemoveIndexConcurrently):
        monkeypatch.setattr(operation, "database_backwards", lambda *_: None)
    with pytest.raises(CommandError, match=r"^The first migrations of \w+ cannot be reversed, .* drop the database"):
        call_command("migrate", app, "zero", verbosity=0)
    with connection.cursor() as cursor:
        assert "audit_event" in connection.introspection.table_names(cursor)
        assert "memories_app_memory" in connection.introspection.table_names(cursor)


@pytest.mark.django_db
def test_database_of_an_unreleased_version_is_refused() -> None:
    MigrationRecorder(connection).record_applied(*migrating.OF_UNRELEASED)
    run_sql(
        "DELETE FROM django_migrations"
        " WHERE app IN ('memories_app', 'retention', 'erasure', 'home')"
        " OR app = 'audit' AND name >= '0004' AND name <> '0006_note_rows'"
        " OR app = 'sessions_app' AND name >= '0009' OR app = 'accounts' AND name >= '0006'"
    )
    with pytest.raises(CommandError) as refusal:
        call_command("migrate", verbosity=0)
    folder = connection.settings_dict.get("DATA_DIR")
    remedy = f"stop memadmin, delete the folder {folder}" if folder else "create an empty database"
    assert str(refusal.value) == (
        f"This database was made by an unreleased version of memadmin and cannot be migrated: {remedy}, and run the"
        " command again. Nothing was changed."
    )
    assert not [app for app, _ in MigrationRecorder(connection).applied_migrations() if app == "memories_app"]
