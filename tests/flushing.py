"""How the suite empties tables between tests with real transactions: as the owner, who alone can pass the guards.

Django's own flush is refused by the audit log, as everybody's is, and would be recorded by the governed tables. What
migrations have put into the database comes back: the next test finds roles as an installation has them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations

# Jobs that nobody ran are no table of Django's own: the next test that defers the same job would find it waiting.
JOBS = "TRUNCATE procrastinate_jobs, procrastinate_events, procrastinate_periodic_defers, procrastinate_workers CASCADE"

GUARDS = """
SELECT tgrelid::regclass::text, quote_ident(tgname) FROM pg_trigger
WHERE tgfoid = to_regprocedure('memadmin_refuse_change()')
"""

# Each before those that refer to it.
FROM_MIGRATIONS = ("django_content_type", "auth_permission", "auth_group", "auth_group_permissions")

_first_rows: dict[str, str] = {}


def remember_first_rows() -> None:
    """Of a database that has just been made."""
    with connection.cursor() as cursor:
        for table in FROM_MIGRATIONS:
            cursor.execute(f"SELECT json_agg(each) FROM {table} AS each")
            _first_rows[table] = json.dumps(cursor.fetchone()[0])


def flush_as_owner(operations: DatabaseOperations, statements: Sequence[str]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        # No trigger fires, except those that always do.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(GUARDS)
        guards = cursor.fetchall()
        for table, guard in guards:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {guard}")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute(JOBS)
        for table, rows in _first_rows.items():
            # Where the log alone is emptied, they are still there.
            again = f"SELECT * FROM json_populate_recordset(NULL::{table}, %s) ON CONFLICT DO NOTHING"
            cursor.execute(f"INSERT INTO {table} {again}", [rows])
            counter = f"pg_get_serial_sequence('{table}', 'id')"
            cursor.execute(f"SELECT setval({counter}, greatest(nextval({counter}), max(id))) FROM {table}")
        for table, guard in guards:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {guard}")
