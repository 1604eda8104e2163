"""`migrate` on databases of other people: it names everything that is missing before it changes anything."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from memadmin.migrating import LOCK
from memadmin.prerequisites import problems_of
from memories_app.vector_column import missing_vectors
from tests.agents import run_sql
from tests.deploy.connecting import connected_as

ROLE, DATABASE = "migrates_elsewhere", "elsewhere"


def problems() -> list[str]:
    return list(problems_of(connection))


@pytest.fixture
def stranger(db: None) -> str:
    run_sql("CREATE ROLE stranger")
    return "stranger"


@pytest.mark.django_db
def test_nothing_is_missing_here() -> None:
    assert problems() == []
    assert missing_vectors(connection) == ""


def test_role_that_may_not_change_the_tables_is_told_who_may(stranger: str) -> None:
    run_sql("GRANT SELECT ON django_migrations TO stranger")
    with connected_as(stranger):
        [told] = problems()
    assert told.startswith("The tables belong to postgres, and stranger may not change them")
    remedy = told[told.index("GRANT ") :].partition(" as an")[0]
    run_sql(remedy)
    with connected_as(stranger):
        assert problems() == []


def test_role_that_may_not_create_tables_is_told_the_grant(stranger: str) -> None:
    run_sql("CREATE SCHEMA fresh; GRANT USAGE ON SCHEMA fresh TO stranger; SET LOCAL search_path = fresh")
    with connected_as(stranger):
        [told] = problems()
    assert told == (
        "stranger may not create tables in the schema fresh: run GRANT USAGE, CREATE ON SCHEMA fresh TO stranger;"
        " as an administrator of the database."
    )
    run_sql("GRANT USAGE, CREATE ON SCHEMA fresh TO stranger")
    with connected_as(stranger):
        assert problems() == []


def test_search_path_without_a_schema_is_told(stranger: str) -> None:
    run_sql("SET LOCAL search_path = stranger, nowhere")
    with connected_as(stranger):
        [told] = problems()
    assert told.startswith(
        "No schema of the search_path of stranger exists and may be used: run CREATE SCHEMA stranger"
    )
    run_sql("CREATE SCHEMA stranger AUTHORIZATION stranger")
    with connected_as(stranger):
        assert problems() == []


@pytest.mark.django_db
def test_tables_of_another_django_program_are_left_alone() -> None:
    run_sql("CREATE SCHEMA shop; SET LOCAL search_path = shop")
    recorder = MigrationRecorder(connection)
    recorder.record_applied("auth", "0001_initial")
    assert problems() == []
    recorder.record_applied("orders", "0001_initial")
    [told] = problems()
    assert told.startswith(
        "The schema shop has the tables of another Django program (orders): run CREATE SCHEMA memadmin"
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ((14, "UTF8", False, False), "PostgreSQL 14 is too old: memadmin needs 15 or newer."),
        ((16, "LATIN1", False, False), "has the encoding LATIN1, which cannot store every text of agents"),
        ((16, "UTF8", True, True), "This server is a replica, which takes no changes"),
        ((16, "UTF8", False, True), "Connections of me are read-only: run ALTER ROLE me IN DATABASE agents SET"),
    ],
)
def test_servers_that_are_not_at_hand(
    monkeypatch: pytest.MonkeyPatch, facts: tuple[object, ...], sentence: str
) -> None:
    row = ", ".join(f"'{fact}'" if isinstance(fact, str) else str(fact) for fact in facts)
    monkeypatch.setattr("memadmin.prerequisites.FACTS", f"SELECT {row}, 'me', 'agents', 'public', true, NULL")
    [told] = problems()
    assert sentence in told


# --- the command, on a database that a role owns which is no administrator --------------------------------------------


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[psycopg.Connection[Any]]:
    """An administrator's connection to an empty database, whose role may create tables and nothing else."""
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password") if given.get(name)}
    name = f"{DATABASE}_{connection.settings_dict['NAME']}"
    with psycopg.connect(**reach, dbname="postgres", autocommit=True) as server:
        server.execute(f"CREATE ROLE {ROLE}_{os.getpid()} LOGIN")
        server.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        try:
            with psycopg.connect(**reach, dbname=name, autocommit=True) as database:
                yield database
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")
            server.execute(f"DROP ROLE {ROLE}_{os.getpid()}")


def migrate(reach: psycopg.ConnectionInfo, folder: Path) -> subprocess.CompletedProcess[str]:
    address = f"postgres://{ROLE}_{os.getpid()}@/{reach.dbname}?host={reach.host}&port={reach.port}"
    return subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        check=False,
        cwd=settings.CHECKOUT_DIR,
        capture_output=True,
        text=True,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("MEMADMIN_")},
            "DJANGO_SETTINGS_MODULE": "memadmin.settings",
            "DATABASE_URL": address,
            "MEMADMIN_DATA_DIR": str(folder),
        },
    )


ASKING = """
SELECT count(*) FROM pg_stat_activity
WHERE query LIKE 'SELECT pg_try_advisory_lock%' AND state = 'idle' AND datname = current_database()
"""


@pytest.mark.release
def test_started_twice_one_waits_for_the_other(elsewhere: psycopg.Connection[Any], tmp_path: Path) -> None:
    elsewhere.execute(f"GRANT USAGE, CREATE ON SCHEMA public TO {ROLE}_{os.getpid()}")
    elsewhere.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(migrate, elsewhere.info, tmp_path / name) for name in ("one", "other")]
        while elsewhere.execute(ASKING).fetchone() != (2,):
            assert not any(each.done() for each in running), "It did not wait."
            time.sleep(0.05)
        assert elsewhere.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,)
        elsewhere.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    for each in running:
        ended = each.result()
        assert ended.returncode == 0, ended.stderr
        assert "Another process migrates this database. This one waits for its end." in ended.stderr
    doubled = "SELECT app, name FROM django_migrations GROUP BY app, name HAVING count(*) > 1"
    assert elsewhere.execute(doubled).fetchall() == []


TYPE = """
SELECT format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = 'memories_app_memory'::regclass AND attname = 'embedding'
"""


@pytest.mark.release
def test_every_remedy_is_named_and_enough(elsewhere: psycopg.Connection[Any], tmp_path: Path) -> None:
    refused = migrate(elsewhere.info, tmp_path)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    sentence = refused.stderr.splitlines()[-1]
    assert "may not create tables in the schema public" in sentence
    assert elsewhere.execute(
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
    ).fetchone() == (0,)

    elsewhere.execute(sentence[sentence.index("GRANT ") : sentence.index(";")])
    without_vectors = migrate(elsewhere.info, tmp_path)
    assert without_vectors.returncode == 0, without_vectors.stderr
    assert "may not create the extension vector in" in without_vectors.stderr
    assert elsewhere.execute(TYPE).fetchone() == ("text",)

    elsewhere.execute("CREATE EXTENSION vector")
    with_vectors = migrate(elsewhere.info, tmp_path)
    assert (with_vectors.returncode, with_vectors.stderr) == (0, "")
    assert elsewhere.execute(TYPE).fetchone() == ("vector(256)",)
    assert elsewhere.execute("SELECT to_regclass('memory_shared_vectors') IS NOT NULL").fetchone() == (True,)
