"""A backup of the test database, and what is restored from it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from django.db import connection
from psycopg import sql

from memadmin.embedded.server import EmbeddedServer, server_for
from tests.template_database import _address_of, connect_to


def programs() -> Path:
    """Folder of the embedded server's programs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return Path(psutil.Process(cursor.fetchone()[0]).exe()).parent


def dump() -> bytes:
    """What `pg_dump` writes about the test database."""
    command: list[str | Path] = [programs() / "pg_dump", "--dbname", _address_of(connection.settings_dict["NAME"])]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


@contextmanager
def on_another_server(folder: Path, backup: bytes) -> Iterator[EmbeddedServer]:
    """Within the block this process works on a server of its own, and a database restored there from the backup."""
    psql, usual, server = programs() / "psql", {**connection.settings_dict}, server_for(folder)
    connection.close()
    server.ensure_database("memadmin")
    reach = ["--host", server.ensure_running().socket_dir, "--username", "postgres", "--dbname", "memadmin"]
    command: list[str | Path] = [psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", *reach]
    subprocess.run(command, check=True, input=backup, stdout=subprocess.DEVNULL)
    connection.settings_dict |= {"NAME": "memadmin", "DATA_DIR": folder}
    try:
        yield server
    finally:
        connection.close()
        connection.settings_dict.clear()
        connection.settings_dict |= usual
        server.leave()


@contextmanager
def restored(backup: bytes) -> Iterator[None]:
    """Within the block this process works on a database that was restored from the backup."""
    folder, usual = programs(), connection.settings_dict["NAME"]
    connection.close()
    name = f"{usual}_restored"
    with closing(connect_to("postgres")) as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        command: list[str | Path] = [
            folder / "psql",
            "--no-psqlrc",
            "--quiet",
            "--set",
            "ON_ERROR_STOP=1",
            "--dbname",
            _address_of(name),
        ]
        subprocess.run(command, check=True, input=backup, stdout=subprocess.DEVNULL)
        connection.settings_dict["NAME"] = name
        try:
            yield
        finally:
            connection.close()
            connection.settings_dict["NAME"] = usual
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
