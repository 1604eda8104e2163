"""Each migration since the last release: it is safe while the older version runs, or says what it is not."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.postgres.operations import AddIndexConcurrently
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations import AddField, AddIndex, CreateModel, DeleteModel, Migration, RemoveField, RunPython
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation
from django.db.migrations.recorder import MigrationRecorder

from memadmin import migrating

LAST_RELEASE: dict[str, Any] = tomllib.loads(Path(__file__).with_name("last_release.toml").read_text())

OUR_APPS = sorted(
    app.label
    for app in apps.get_app_configs()
    if app.name.startswith(("memadmin", "sessions_app", "memories_app"))
    and any(Path(app.path).glob("migrations/0*.py"))
)

SAFE = (
    r"BEGIN",
    r"COMMIT",
    r"SET CONSTRAINTS .* IMMEDIATE",
    r"CREATE TABLE ",
    r"COMMENT ON ",
    r"(?:CREATE|DROP) (?:UNIQUE )?INDEX CONCURRENTLY ",
    # Older inserts leave the column out. A default that is computed for each row would write the whole table.
    r'ALTER TABLE "\w+" ADD COLUMN (?!.*(?:UNIQUE|random|clock_timestamp))(?!(?!.* DEFAULT ).* NOT NULL)',
    r'ALTER TABLE "\w+" ALTER COLUMN "\w+" (?:DROP NOT NULL|SET DEFAULT )',
)


BY_PYTHON = "-- THIS OPERATION CANNOT BE WRITTEN AS SQL"


def since_the_release() -> list[Migration]:
    """Our migrations that an upgrade applies, in their order."""
    loader = MigrationLoader(None)
    graph, newest = loader.graph, LAST_RELEASE["migrations"]
    plan = {key: None for leaf in graph.leaf_nodes() for key in graph.forwards_plan(leaf)}
    return [graph.nodes[key] for key in plan if key[0] in OUR_APPS and key[1] > newest.get(key[0], "")]


def statements_of(migration: Migration) -> list[str]:
    """What it would run. A function of Python is the line with which Django says that it cannot be written as SQL."""
    loader, key = MigrationLoader(connection), (migration.app_label, migration.name)
    if key not in loader.graph.nodes:
        newest = loader.graph.leaf_nodes(migration.app_label)
        loader.graph.add_node(key, migration)
        for leaf in newest:
            loader.graph.add_dependency(migration, key, leaf)
    collected = loader.collect_sql([(migration, False)])
    lines = [f"{line};" if line == BY_PYTHON else line for line in collected if not re.match("--(?! THIS)", line)]
    found = [" ".join(each.split()).rstrip(";") for each in "\n".join(lines).split(";\n")]
    return [statement for statement in found if statement]


def doubtful(statements: list[str], new_tables: set[str]) -> list[str]:
    """Statements that an older version, or a large table, could suffer from. `new_tables` are known to nobody else."""
    return [
        statement
        for statement in statements
        if not re.match("|".join(SAFE), statement)
        and not ((table := re.search(r' (?:TABLE|ON) "(\w+)"', statement)) and table[1] in new_tables)
    ]


def test_all_our_apps_are_in_the_list_of_the_release() -> None:
    """An app with its first migration since then needs no line."""
    on_disk = set(MigrationLoader(None).disk_migrations)
    assert set(LAST_RELEASE["migrations"].items()) <= on_disk


def unexplained(migrations: Sequence[Migration]) -> Iterator[str]:
    """A sentence for each of them that an older version could suffer from, and that does not say how."""
    new_tables: set[str] = set()
    for migration in migrations:
        statements = statements_of(migration)
        new_tables |= {name for each in statements for name in re.findall(r'^CREATE TABLE "(\w+)"', each)}
        found, sentence = doubtful(statements, new_tables), getattr(migration, "while_older_runs", "")
        if found and not re.match(r"(Safe|Not safe): .*\.$", sentence):
            yield f"{migration} needs `while_older_runs`, which begins with `Safe: ` or `Not safe: `, for: {found}"


# Outside a transaction, where an index that is built concurrently can be written as SQL.
@pytest.mark.django_db(transaction=True)
def test_a_migration_that_an_older_version_could_suffer_from_says_so() -> None:
    assert list(unexplained(since_the_release())) == []


def made_up(*operations: Operation, atomic: bool = True, while_older_runs: str = "") -> Migration:
    """A next migration of saved views."""
    body = {"operations": list(operations), "atomic": atomic, "while_older_runs": while_older_runs}
    made: Migration = type("MadeUp", (Migration,), body)("9999_made_up", "home")
    return made


COLOUR = AddField("savedview", "colour", models.CharField(max_length=9, null=True))
BY_NAME = models.Index("name", "id", name="view_by_name")
NEW_TABLE = CreateModel("Folder", fields=[("id", models.BigAutoField(primary_key=True))])
BY_NUMBER = AddIndex("folder", models.Index(fields=["-id"], name="folder_newest"))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("operations", "atomic", "is_safe"),
    [
        ([COLOUR], True, True),
        ([NEW_TABLE, BY_NUMBER], True, True),
        ([AddIndexConcurrently("savedview", BY_NAME)], False, True),
        ([COLOUR, AddIndex("savedview", BY_NAME)], True, False),
        ([COLOUR, RemoveField("savedview", "query")], True, False),
        ([COLOUR, RunPython(RunPython.noop)], True, False),
    ],
    ids=["column", "table", "index built concurrently", "index", "lost column", "function of Python"],
)
def test_made_up_migrations_have_to_say_so(operations: list[Operation], atomic: bool, is_safe: bool) -> None:
    silent = list(unexplained([made_up(*operations, atomic=atomic)]))
    assert [each.partition(" needs")[0] for each in silent] == ([] if is_safe else ["home.9999_made_up"])
    for sentence in ("Safe: nobody reads it.", "Not safe: lists are gone."):
        assert list(unexplained([made_up(*operations, atomic=atomic, while_older_runs=sentence)])) == []
    vague = list(unexplained([made_up(*operations, atomic=atomic, while_older_runs="Probably safe.")]))
    assert vague == silent


@pytest.mark.parametrize(
    ("statement", "is_doubtful"),
    [
        ('CREATE TABLE "a" ("id" bigint NOT NULL PRIMARY KEY)', False),
        ('ALTER TABLE "a" ADD COLUMN "b" integer NULL', False),
        ('ALTER TABLE "a" ADD COLUMN "b" integer DEFAULT 0 NOT NULL', False),
        ('ALTER TABLE "a" ADD COLUMN "b" integer NOT NULL', True),
        ('ALTER TABLE "a" ADD COLUMN "b" integer NULL UNIQUE', True),
        ('ALTER TABLE "a" ADD COLUMN "b" uuid DEFAULT gen_random_uuid() NOT NULL', True),
        ('ALTER TABLE "a" ALTER COLUMN "b" DROP DEFAULT', True),
        ('ALTER TABLE "a" ALTER COLUMN "b" SET NOT NULL', True),
        ('ALTER TABLE "a" ALTER COLUMN "b" TYPE bigint', True),
        ('ALTER TABLE "a" ALTER COLUMN "b" DROP NOT NULL', False),
        ('ALTER TABLE "a" DROP COLUMN "b" CASCADE', True),
        ('ALTER TABLE "a" RENAME COLUMN "b" TO "c"', True),
        ('ALTER TABLE "a" ADD CONSTRAINT "c" CHECK ("b" > 0)', True),
        ('ALTER TABLE "new" ADD CONSTRAINT "c" CHECK ("b" > 0)', False),
        ('CREATE INDEX "i" ON "a" ("b")', True),
        ('CREATE INDEX "i" ON "new" ("b")', False),
        ('CREATE INDEX CONCURRENTLY "i" ON "a" ("b")', False),
        ('DROP TABLE "a" CASCADE', True),
        ("CREATE OR REPLACE FUNCTION f() RETURNS void", True),
        (BY_PYTHON, True),
    ],
)
def test_what_is_doubtful(statement: str, is_doubtful: bool) -> None:
    assert bool(doubtful([statement], {"new"})) == is_doubtful


@pytest.mark.django_db
def test_a_function_of_python_is_a_statement_of_its_own() -> None:
    statements = statements_of(made_up(RunPython(RunPython.noop), DeleteModel("SavedView")))
    assert BY_PYTHON in statements
    assert [each for each in statements if "DROP TABLE" in each] == ['DROP TABLE "home_savedview" CASCADE']


@pytest.mark.django_db
def test_migrate_says_first_what_is_not_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    """And says nothing on a new database, or when all is done."""
    loader = MigrationLoader(None)
    (app, name) = loader.graph.leaf_nodes("erasure")[0]
    monkeypatch.setattr(
        type(loader.graph.nodes[app, name]), "while_older_runs", "Not safe: lists are gone.", raising=False
    )
    err = StringIO()
    call_command("migrate", plan=True, stdout=StringIO(), stderr=err)
    assert not err.getvalue()
    MigrationRecorder(connection).record_unapplied(app, name)
    call_command("migrate", plan=True, stdout=StringIO(), stderr=err)
    assert err.getvalue() == (
        f"While an older version runs, {app}.{name} is not safe: lists are gone."
        " Stop web servers and workers first, or accept it.\n"
    )
    assert list(migrating.warnings_of([], is_new=True)) == []


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=settings.CHECKOUT_DIR, capture_output=True, text=True, check=True
    ).stdout


def newest_by_app(files: Iterator[str] | list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files):
        if named := re.fullmatch(r"(?:\w+/)?(\w+)/migrations/(0\w+)\.py", file):
            found[named[1]] = named[2]
    return found


def test_the_list_is_that_of_the_commit() -> None:
    try:
        files = git("ls-tree", "-r", "--name-only", LAST_RELEASE["commit"]).splitlines()
    except subprocess.CalledProcessError:
        pytest.skip("THE LAST RELEASE IS NOT IN THIS CHECKOUT, which has no history: its migrations were not compared.")
    assert newest_by_app(files) == LAST_RELEASE["migrations"]
