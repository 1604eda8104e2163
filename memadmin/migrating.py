"""Migrations: SQL files and declared triggers as their operations, and databases from before the first of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from django.apps import apps
from django.core.management.base import CommandError
from django.db import ProgrammingError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from django.db.models import Model
from psycopg.errors import UndefinedColumn, UndefinedFunction, UndefinedTable

# Functions that run with the rights of their owner keep this path (SET search_path FROM CURRENT), else a caller could
# put tables of the same name before ours. For the rest of the migration's transaction.
FIX_PATH = "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)"

LOCK = 0x6D696772
"""PostgreSQL advisory lock of the process that migrates a database."""

FIRST = ("0001_model_tables", "0002_triggers_and_rows")
"""The first migrations of each app. They replace longer histories, of which these were the last migrations:"""

REPLACED = {
    "accounts": "0007_who_sees_the_system",
    "audit": "0006_requests_and_jobs_newest",
    "erasure": "0010_batch_reminders",
    "home": "0003_saved_views",
    "memories_app": "0010_shared_by_decision",
    "retention": "0014_items_noted_by_id",
    "runs": "0002_runs_of_a_kind",
    "sessions_app": "0018_names_of_rights",
}


def take_turn(
    connection: BaseDatabaseWrapper, lock: int, *, before_waiting: Callable[[], object] = lambda: None
) -> None:
    """Takes an advisory lock, which lasts until it is given back or the connection ends; waits for another session.

    `before_waiting` is called once if the lock is not free.
    """
    # Polling: a waiting statement would block the index that the other one builds concurrently, for ever.
    with connection.cursor() as cursor:
        for attempt in count():
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
            if cursor.fetchone()[0]:
                return
            if attempt == 0:
                before_waiting()
            time.sleep(0.5)


@contextmanager
def alone(connection: BaseDatabaseWrapper, say: Callable[[str], object]) -> Iterator[None]:
    """A block in which no other process migrates this database. Calls `say` with a sentence if it has to wait."""
    sentence = "Another process migrates this database. This one waits for its end."
    take_turn(connection, LOCK, before_waiting=lambda: say(sentence))
    try:
        yield
    finally:
        if connection.is_usable():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])


def sql_text(app: str, name: str) -> str:
    """The text of `sql/<name>` of an app."""
    return Path(apps.get_app_config(app).path, "sql", name).read_text(encoding="utf-8")


class OneWay(Operation):
    """An operation that changes no model, and is not undone: the tables would be open without it."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Models are the same afterwards."""

    def database_backwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        raise CommandError(
            f"The first migrations of {app_label} cannot be reversed, because they protect the tables."
            " To start again, drop the database."
        )


SWITCH_TRIGGERS = """
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT t.tgrelid::regclass AS of_table, t.tgname FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
        WHERE p.pronamespace = to_regnamespace(current_schema()) AND p.proname = ANY ('{%s}')
    LOOP
        EXECUTE format('ALTER TABLE %%s %s TRIGGER %%I', found.of_table, found.tgname);
    END LOOP;
END $$
"""


class RunFile(OneWay):
    """Runs `sql/<name>` of an app, with a search_path of the tables' schema alone.

    Triggers that call one of the functions `without` do not fire meanwhile: the file takes over what they would refuse.
    """

    def __init__(self, app: str, name: str, *, without: Iterable[str] = ()) -> None:
        self.app, self.name, self.without = app, name, tuple(without)

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if not schema_editor.connection.in_atomic_block:
            raise CommandError(f"sql/{self.name} needs a transaction: the search_path is that of one transaction.")
        whole = [FIX_PATH, sql_text(self.app, self.name)]
        if functions := ",".join(self.without):
            whole.insert(1, SWITCH_TRIGGERS % (functions, "DISABLE"))
            # Tables whose foreign keys are still to be checked are not altered.
            whole += ["SET CONSTRAINTS ALL IMMEDIATE", SWITCH_TRIGGERS % (functions, "ENABLE")]
        for statements in whole:
            # None: a percent sign is one, not a place for a parameter.
            schema_editor.execute(statements, params=None)

    def describe(self) -> str:
        return f"Run {self.app}/sql/{self.name}"


class DropFunctions(OneWay):
    """Drops functions without arguments that the SQL files no longer make."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for name in self.names:
            schema_editor.execute(f"DROP FUNCTION IF EXISTS {name}()")

    def describe(self) -> str:
        return f"Drop {', '.join(self.names)}"


OUR_TRIGGERS = "SELECT quote_ident(tgname) FROM pg_trigger WHERE tgrelid = to_regclass(%s) AND tgname ~ '^pgtrigger_'"


class InstallTriggers(OneWay):
    """Installs the triggers that models of the app declare, and drops those that they no longer declare. Without names,
    of all models that the migrations so far have made.

    Declarations are those of the code that runs, so a new database has the newest ones early. A trigger whose table,
    column or function a later migration makes is left to that migration, which names the model again.
    """

    def __init__(self, *models: str) -> None:
        self.models = models

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        there = {model for label, model in to_state.models if label == app_label}
        wanted = {name.lower() for name in self.models} or there
        if unknown := wanted - there:
            raise LookupError(f"{app_label} has no model {', '.join(sorted(unknown))} here.")
        for model in apps.get_app_config(app_label).get_models(include_auto_created=True):
            if model._meta.model_name in wanted:
                self.install(model, schema_editor)

    def install(self, model: type[Model], schema_editor: BaseDatabaseSchemaEditor) -> None:
        connection, table = schema_editor.connection, model._meta.db_table
        for trigger in getattr(model._meta, "triggers", ()):
            try:
                with transaction.atomic(using=connection.alias):
                    schema_editor.execute(trigger.compile(model).install_sql, params=None)
            except ProgrammingError as problem:
                if not isinstance(problem.__cause__, UndefinedColumn | UndefinedFunction | UndefinedTable):
                    raise
        # Of other models with this table, too.
        declared = {
            trigger.get_pgid(each)
            for each in apps.get_models(include_auto_created=True)
            if each._meta.db_table == table
            for trigger in getattr(each._meta, "triggers", ())
        }
        with connection.cursor() as cursor:
            cursor.execute(OUR_TRIGGERS, [connection.ops.quote_name(table)])
            for (name,) in cursor.fetchall():
                if name not in declared:
                    schema_editor.execute(f"DROP TRIGGER {name} ON {connection.ops.quote_name(table)}")

    def describe(self) -> str:
        return f"Install the triggers of {', '.join(self.models) or 'all models'}"


def warnings_of(pending: Iterable[Migration], *, is_new: bool) -> Iterator[str]:
    """A sentence for each migration that is not safe while an older version runs; none for a new database.

    Such a migration has a `while_older_runs`, a sentence that begins with `Not safe: `. One that begins with `Safe: `
    is for readers. A test demands either where statements could hurt.
    """
    for migration in () if is_new else pending:
        verdict, _, sentence = getattr(migration, "while_older_runs", "").partition(": ")
        if verdict == "Not safe":
            yield (
                f"While an older version runs, {migration.app_label}.{migration.name} is not safe: {sentence}"
                " Stop web servers and workers first, or accept it."
            )


def record_first_migrations(connection: BaseDatabaseWrapper) -> None:
    """Records the first migrations as applied in a database that has all of the history which they replace.

    Raises CommandError for one that has a part of it, or an older history: an unreleased version made it. Django's
    `replaces` would not do: it records the replaced migrations of a new database, all with the first of an app, and one
    whose first `migrate` was interrupted would pass for complete.
    """
    recorder = MigrationRecorder(connection)
    applied = {(app, name) for app, name in recorder.applied_migrations() if app in REPLACED}
    if not applied or any(name in FIRST for _, name in applied):
        return
    if REPLACED.items() <= applied:
        with transaction.atomic(using=connection.alias):
            for app, name in MigrationLoader(None).disk_migrations:
                if app in REPLACED and name in FIRST:
                    recorder.record_applied(app, name)
        return
    folder = connection.settings_dict.get("DATA_DIR")
    remedy = f"stop memadmin, delete the folder {folder}" if folder else "create an empty database"
    raise CommandError(
        f"This database was made by an unreleased version of memadmin and cannot be migrated: {remedy}, and"
        " run the command again. Nothing was changed."
    )
