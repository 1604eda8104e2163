"""The squashed migrations make the database that the ones before them made."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from memadmin.embedded import cluster

RIGHTS = """
SELECT role.name, app_label, codename FROM auth_group AS role
LEFT JOIN auth_group_permissions AS given ON given.group_id = role.id
LEFT JOIN auth_permission AS permission ON permission.id = given.permission_id
LEFT JOIN django_content_type AS type ON type.id = permission.content_type_id
"""
PERMISSIONS = """
SELECT app_label, model, codename, name FROM django_content_type AS type
LEFT JOIN auth_permission ON content_type_id = type.id
"""
PREPARE = """
import django
django.setup()
from django.core.management import call_command
from django.db import connection
call_command("migrate", verbosity=0)
print("{HOST} {PORT} {USER} {NAME}".format(**connection.settings_dict))
sys_stdin = __import__("sys").stdin.read()
"""


class Made:
    """A database made by one set of migrations, as pg_dump and psql see it."""

    def __init__(self, folder: Path, settings_module: str) -> None:
        environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": settings_module,
            "MEMADMIN_DATA_DIR": str(folder),
            "PYTHONPATH": str(settings.CHECKOUT_DIR),
        }
        # The server runs as long as the process that started it.
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PREPARE],
            env=environment,
            cwd=settings.CHECKOUT_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout
            host, port, user, name = process.stdout.readline().split()
            self.place = ["-h", host, "-p", port, "-U", user, "-d", name]
            self.schema = self.run("pg_dump", "--schema-only", "--restrict-key=same")
            self.rights = sorted(self.run("psql", "-Atc", RIGHTS).splitlines())
            self.permissions = sorted(self.run("psql", "-Atc", PERMISSIONS).splitlines())
            process.communicate()

    def run(self, program: str, *arguments: str) -> str:
        command = [cluster._program(program), *self.place, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def columns_sorted(schema: str) -> str:
    """Columns were added in another order than fields are declared in."""

    def in_order(table: re.Match[str]) -> str:
        return table[1] + "\n".join(sorted(line.rstrip(",") for line in table[2].splitlines())) + table[3]

    return re.sub(r"(CREATE TABLE \S+ \(\n)(.*?)(\n\);)", in_order, schema, flags=re.DOTALL)


def as_squashed(schema: str) -> str:
    """Without what the old migrations left behind."""
    # The wrapper that pgtrigger makes around a trigger, of one that went; nothing calls it.
    schema, count = re.subn(r"-- Name: pgtrigger_enqueue_267e0\(\).*?(?=-- Name: )", "", schema, flags=re.DOTALL)
    assert count == 1
    # The model was renamed, and what Django had named after it kept its name.
    schema = schema.replace("accounts_grantnotice_grant_id_9d8ea9fd", "accounts_notice_grant_id_f62e2ae1")
    schema = re.sub(r" CONSTRAINT accounts_grantnotice_\w+_not_null", "", schema)
    return schema.replace("accounts_grantnotice", "accounts_notice")


@pytest.mark.slow
def test_database_is_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    old = Made(tmp_path_factory.mktemp("old"), "tests.old_migrations")
    new = Made(tmp_path_factory.mktemp("new"), "tests.settings")
    assert len(new.schema) > 200_000
    assert columns_sorted(as_squashed(old.schema)).splitlines() == columns_sorted(new.schema).splitlines()
    assert old.rights == new.rights
    assert len(new.rights) == 61
    assert old.permissions == new.permissions
