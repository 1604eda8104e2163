"""Migrations: SQL files as their operations, and the refusal of databases made by unreleased versions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management.base import CommandError
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState

# Functions that run with the rights of their owner keep this path (SET search_path FROM CURRENT), else a caller could
# put tables of the same name before ours. For the rest of the migration's transaction.
FIX_PATH = "SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)"

LOCK = 0x6D696772
"""PostgreSQL advisory lock of the process that migrates a database."""

OF_UNRELEASED = ("audit", "0006_note_rows")
"""A migration that only databases of unreleased versions have."""


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


class RunFile(OneWay):
    """Runs `sql/<name>` of an app, with a search_path of the tables' schema alone."""

    def __init__(self, app: str, name: str) -> None:
        self.app, self.name = app, name

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        if not schema_editor.connection.in_atomic_block:
            raise CommandError(f"sql/{self.name} needs a transaction: the search_path is that of one transaction.")
        for statements in (FIX_PATH, sql_text(self.app, self.name)):
            # None: a percent sign is one, not a place for a parameter.
            schema_editor.execute(statements, params=None)

    def describe(self) -> str:
        return f"Run {self.app}/sql/{self.name}"


class InstallTriggers(OneWay):
    """Installs the triggers that models of the app have in their `options` so far, in one go.

    With `AddTrigger` Django renders the models anew for each of them, which is a third of a whole `migrate`.
    """

    def database_forwards(
        self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, from_state: ProjectState, to_state: ProjectState
    ) -> None:
        for (label, _), model in to_state.models.items():
            for trigger in model.options.get("triggers", ()) if label == app_label else ():
                schema_editor.execute(trigger.install_sql, params=None)

    def describe(self) -> str:
        return "Install the triggers of models"


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


def refuse_unreleased(*, using: str, **kwargs: Any) -> None:
    """Receiver of `pre_migrate`: raises CommandError for a database that an unreleased version has made."""
    connection = connections[using]
    if OF_UNRELEASED in MigrationRecorder(connection).applied_migrations():
        folder = connection.settings_dict.get("DATA_DIR")
        remedy = f"stop memadmin, delete the folder {folder}" if folder else "create an empty database"
        raise CommandError(
            f"This database was made by an unreleased version of memadmin and cannot be migrated: {remedy}, and"
            " run the command again. Nothing was changed."
        )
