"""A migrated database that the tests' own are copied from: `migrate` runs once for a schema, not once for each process.

It is named for what the schema comes from, so that another schema has another one. Those that no test run uses any more
are dropped by the next that makes one. Tests with a server of their own get what `pg_dump` writes about it.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from psycopg import sql
from psycopg.conninfo import make_conninfo

from memadmin.embedded.server import EmbeddedServer
from memadmin.settings import CHECKOUT_DIR

OURS = ("memadmin", "sessions_app", "memories_app")
PREFIX = "test_template_"
"""The embedded server creates what somebody connects to, except databases whose names begin with `test_`."""


@contextmanager
def template_database() -> Iterator[str]:
    """The name of a migrated database that nobody drops until the end; it is made when there is none of this schema."""
    name = f"{PREFIX}{fingerprint()}"
    with closing(connect_to("postgres")) as server:
        # One process migrates, and the others wait for it.
        server.execute("SELECT pg_advisory_lock(hashtext(%s), 0)", [PREFIX])
        server.execute("SELECT pg_advisory_lock_shared(hashtext(%s), 1)", [name])
        if name not in templates_on(server):
            _drop_unused(server)
            _make(server, name)
        server.execute("SELECT pg_advisory_unlock(hashtext(%s), 0)", [PREFIX])
        yield name


def copy_to(server: EmbeddedServer, database: str = "memadmin") -> None:
    """Fills an empty database of another embedded server as `migrate` would, in a tenth of its time."""
    server.ensure_database(database)
    running = server.ensure_running()
    programs = Path(psutil.Process(running.pid).exe()).parent
    with template_database() as name:
        dump = subprocess.run([programs / "pg_dump", "--dbname", _address_of(name)], check=True, stdout=subprocess.PIPE)
    psql = [str(programs / "psql"), "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--single-transaction"]
    with_address = [*psql, "--host", running.socket_dir, "--username", "postgres", "--dbname", database]
    subprocess.run(with_address, check=True, input=dump.stdout, stdout=subprocess.DEVNULL)


def _make(server: psycopg.Connection[Any], name: str) -> None:
    """Has its name when it is complete."""
    unfinished = f"{name}_unfinished"
    server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(unfinished)))
    migrate(unfinished)
    server.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(*map(sql.Identifier, (unfinished, name))))


def migrate(database: str) -> None:
    usual = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = database
    try:
        call_command("migrate", interactive=False, verbosity=0)
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual


def _drop_unused(server: psycopg.Connection[Any]) -> None:
    """Those that were not finished among them."""
    for name in templates_on(server):
        is_free = server.execute("SELECT pg_try_advisory_lock(hashtext(%s), 1)", [name]).fetchone()
        if is_free == (True,):
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
            server.execute("SELECT pg_advisory_unlock(hashtext(%s), 1)", [name])


def templates_on(server: psycopg.Connection[Any]) -> list[str]:
    found = server.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", [PREFIX])
    return [name for (name,) in found]


def connect_to(database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(_address_of(database), autocommit=True)


def _address_of(database: str) -> str:
    given = connection.get_connection_params()
    reach = {name: given[name] for name in ("host", "port", "user", "password") if given.get(name)}
    return make_conninfo(**reach, dbname=database)


def fingerprint() -> str:
    """Another one for other installed packages, other text of anything that migrations are or call, and other keys: the
    database knows those with which actors are proved.
    """
    told = hashlib.sha256(f"{settings.SECRET_KEY}\n{settings.SECRET_KEY_FALLBACKS}\n".encode())
    for package in sorted(Path(sysconfig.get_path("purelib")).glob("*.dist-info")):
        told.update(f"{package.name}\n".encode())
    for file in sorted(files_behind_the_schema()):
        told.update(f"{file.relative_to(CHECKOUT_DIR)}\n".encode() + file.read_bytes())
    return told.hexdigest()[:20]


def files_behind_the_schema() -> set[Path]:
    """Our migrations, statements in files, models, whose triggers migrations install, and every module of ours that one
    of these imports, or that those import.
    """
    folders = [CHECKOUT_DIR / each for each in OURS]
    found = {file for folder in folders for file in folder.rglob("*.sql")}
    patterns = ("migrations/*.py", "models.py", "models/*.py")
    waiting = {file for folder in folders for pattern in patterns for file in folder.rglob(pattern)}
    while waiting:
        file = waiting.pop()
        found.add(file)
        waiting |= _imported_by(file) - found
    return found


def _imported_by(file: Path) -> set[Path]:
    """The modules of ours that a file imports, with the packages that they are in."""
    names = set()
    package = ".".join(file.relative_to(CHECKOUT_DIR).parent.parts)
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names |= {module, *(f"{module}.{each.name}" for each in node.names)}
    parts = [name.split(".") for name in names if name.split(".")[0] in OURS]
    places = {CHECKOUT_DIR.joinpath(*each[:length]) for each in parts for length in range(1, len(each) + 1)}
    modules = {place / "__init__.py" for place in places} | {place.with_suffix(".py") for place in places}
    return {each for each in modules if each.exists()}
