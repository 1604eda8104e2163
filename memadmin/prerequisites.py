"""Prerequisites of `migrate`: rights, encoding, version; checked before the first statement changes anything."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.management.base import CommandError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

OLDEST_VERSION = 15

FACTS = """
SELECT current_setting('server_version_num')::int / 10000, current_setting('server_encoding'),
       pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
       quote_ident(current_user), quote_ident(current_database()), quote_ident(current_schema()),
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
       (SELECT quote_ident(pg_get_userbyid(relowner)) FROM pg_class
        WHERE oid = to_regclass('django_migrations') AND NOT pg_has_role(relowner, 'USAGE'))
"""


def refuse_unfit(connection: BaseDatabaseWrapper) -> None:
    """Raises CommandError with every reason why `migrate` would fail here, each with its remedy."""
    if problems := list(problems_of(connection)):
        raise CommandError("\n".join(["This database cannot be migrated, and nothing was changed.", *problems]))


def problems_of(connection: BaseDatabaseWrapper) -> Iterator[str]:
    """Missing prerequisites: sentences with the statements that provide them. Two queries, three with our tables."""
    with connection.cursor() as cursor:
        cursor.execute(FACTS)
        version, encoding, is_replica, is_read_only, role, database, schema, may_create, owner = cursor.fetchone()
    if version < OLDEST_VERSION:
        yield f"PostgreSQL {version} is too old: memadmin needs {OLDEST_VERSION} or newer."
    if encoding != "UTF8":
        yield (
            f"The database {database} has the encoding {encoding}, which cannot store every text of agents: use one"
            f" made by CREATE DATABASE memadmin OWNER {role} ENCODING 'UTF8' TEMPLATE template0;"
        )
    if is_replica:
        yield "This server is a replica, which takes no changes: set DATABASE_URL to the primary server."
    elif is_read_only:
        yield (
            f"Connections of {role} are read-only: run ALTER ROLE {role} IN DATABASE {database} SET"
            " default_transaction_read_only = off; as an administrator of the database."
        )
    if schema is None:
        yield (
            f"No schema of the search_path of {role} exists and may be used: run CREATE SCHEMA {role} AUTHORIZATION"
            f" {role}; as an administrator, or GRANT USAGE, CREATE ON SCHEMA public TO {role}; for the usual one."
        )
    elif owner:
        yield (
            f"The tables belong to {owner}, and {role} may not change them: set DATABASE_URL to connect as {owner}, or"
            f" run GRANT {owner} TO {role}; as an administrator of the database."
        )
    elif not may_create:
        yield (
            f"{role} may not create tables in the schema {schema}: run GRANT USAGE, CREATE ON SCHEMA {schema} TO"
            f" {role}; as an administrator of the database."
        )
    elif others := apps_of_another_program(connection):
        yield (
            f"The schema {schema} has the tables of another Django program ({', '.join(others)}): run CREATE SCHEMA"
            f" memadmin AUTHORIZATION {role}; ALTER ROLE {role} IN DATABASE {database} SET search_path = memadmin,"
            " public; as an administrator of the database."
        )


def apps_of_another_program(connection: BaseDatabaseWrapper) -> list[str]:
    """Apps with migrations in this schema that are not ours; none where memadmin has migrated already."""
    applied = {app for app, _ in MigrationRecorder(connection).applied_migrations()}
    ours = {app for app, _ in MigrationLoader(None).disk_migrations}
    return [] if "audit" in applied else sorted(applied - ours)
