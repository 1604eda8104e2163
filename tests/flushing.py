"""How the suite empties tables between tests with real transactions: as the owner, who alone can pass the guards.

Django's own flush is refused by the audit log, as everybody's is, and would be recorded by the governed tables. What
migrations have put into the database comes back: the next test finds roles as an installation has them.

A test leaves a few rows in a few tables, and these are deleted: to truncate all tables takes hundreds of times as long.
The next test must not notice. A table that is larger than the planner takes a new one for, or that was analyzed, is
truncated; and nothing vacuums, so that rows stand one after the other, as in a new table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.contrib.contenttypes.models import ContentType
from django.db import connection, transaction
from django.db.backends.postgresql.operations import DatabaseOperations
from django.db.backends.utils import CursorWrapper

# Jobs that nobody ran are no table of Django's own: the next test that defers the same job would find it waiting.
JOBS = ["procrastinate_events", "procrastinate_periodic_defers", "procrastinate_jobs", "procrastinate_workers"]

GUARDS = """
SELECT tgrelid::regclass::text, quote_ident(tgname) FROM pg_trigger
WHERE tgfoid = to_regprocedure('memadmin_refuse_change()')
"""

# Each before those that refer to it.
FROM_MIGRATIONS = [
    "django_content_type",
    "auth_permission",
    "auth_group",
    "auth_group_permissions",
    "retention_holdlock",
    "retention_retentionpolicy",
    "retention_policyversion",
    "sessions_app_tombstonelock",
]

WITHOUT_COUNTER = ("retention_retentionpolicy", "retention_policyversion")
"""Those whose keys are UUIDs."""

PAGES_OF_A_NEW_TABLE = 10
"""For so many the planner takes any table that was never vacuumed or analyzed and has fewer."""

OUR_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"

_first_rows: dict[str, str] = {}
_kept_rows: dict[str, str] = {}
_of_agents: list[str] = []


def remember_first_rows() -> None:
    """Of a database that has just been made."""
    with connection.cursor() as cursor:
        cursor.execute(OUR_TABLES)
        for (table,) in cursor.fetchall():
            cursor.execute(f'ALTER TABLE "{table}" SET (autovacuum_enabled = off)')
        _first_rows.update(rows_from_migrations(cursor))


def rows_from_migrations(cursor: CursorWrapper) -> dict[str, str]:
    return rows_of(cursor, FROM_MIGRATIONS, "id")


def rows_of(cursor: CursorWrapper, tables: Sequence[str], order: str) -> dict[str, str]:
    each = [f"(SELECT json_agg(each ORDER BY {order})::text FROM {table} AS each)" for table in tables]
    cursor.execute(f"SELECT {', '.join(each)}")
    return dict(zip(tables, cursor.fetchone(), strict=True))


def keep_rows(tables: Sequence[str]) -> None:
    """Makes all rows that there are now come back whenever the tables are emptied, until `forget_kept_rows`. The given
    tables, of agents, are emptied with Django's.
    """
    with connection.cursor() as cursor:
        django = connection.introspection.django_table_names(only_existing=True, include_views=False)
        filled = [table for table in django if table not in FROM_MIGRATIONS]
        cursor.execute(" UNION ALL ".join(f"SELECT '{each}' WHERE EXISTS (SELECT FROM \"{each}\")" for each in filled))
        _kept_rows.update(rows_of(cursor, [table for (table,) in cursor.fetchall()], "each::text"))
    _of_agents.extend(tables)


def forget_kept_rows() -> None:
    _kept_rows.clear()
    _of_agents.clear()


def flush_as_owner(operations: DatabaseOperations, statements: Sequence[str]) -> None:
    """In place of what Django's flush does with its `statements`, which truncate tables."""
    empty([table for statement in statements for table in re.findall('"([^"]+)"', statement)])
    # As Django has it after each flush: the next test asks for them again.
    ContentType.objects.clear_cache()


def empty(tables: Sequence[str]) -> None:
    """No row is left in these tables and in those of jobs, but for what migrations have put there, and kept rows."""
    with transaction.atomic(), connection.cursor() as cursor:
        # No trigger fires, except those that always do.
        cursor.execute("SET LOCAL session_replication_role = replica")
        changed = rows_from_migrations(cursor) != _first_rows
        kept = [] if changed else FROM_MIGRATIONS
        if _kept_rows:
            now = rows_of(cursor, list(_kept_rows), "each::text")
            kept = [*kept, *(table for table, rows in _kept_rows.items() if rows == now[table])]
        emptied = [table for table in (*_of_agents, *tables, *JOBS) if table not in kept]
        filled, grown = _filled_and_grown(cursor, emptied)
        cursor.execute(GUARDS)
        # What refers to a table is truncated with it, with rows or without.
        guards = [(table, guard) for table, guard in cursor.fetchall() if grown or table in filled]
        for table, guard in guards:
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {guard}")
        if grown:
            cursor.execute("TRUNCATE {} CASCADE".format(", ".join(f'"{table}"' for table in grown)))
        for table in filled:
            cursor.execute(f'DELETE FROM "{table}"')
        if _of_agents:
            counters = [f"{table}_id_seq" for table in _of_agents]
            cursor.execute("SELECT setval(oid, 1, false) FROM pg_class WHERE relname = ANY(%s)", [counters])
        if changed:
            _bring_back(cursor)
        for table, rows in _kept_rows.items():
            if grown or table not in kept:
                _insert(cursor, table, rows)
        for table, guard in guards:
            cursor.execute(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {guard}")


def _filled_and_grown(cursor: CursorWrapper, tables: Sequence[str]) -> tuple[list[str], list[str]]:
    """Tables with rows; and those that the planner does not take for new ones any more."""
    # One that was truncated has no page: most have none, and need not be looked into.
    cursor.execute(
        """
        SELECT relname, relpages > 0 OR pg_relation_size(oid) > %s * current_setting('block_size')::int
        FROM pg_class WHERE oid = ANY(%s::regclass[]) AND pg_relation_size(oid) > 0
        """,
        [PAGES_OF_A_NEW_TABLE, [f'"{table}"' for table in tables]],
    )
    pages = dict(cursor.fetchall())
    if not pages:
        return [], []
    cursor.execute(" UNION ALL ".join(f"SELECT '{table}' WHERE EXISTS (SELECT FROM \"{table}\")" for table in pages))
    filled = [table for (table,) in cursor.fetchall()]
    grown = [table for table, has_grown in pages.items() if has_grown]
    return [table for table in filled if table not in grown], grown


def _bring_back(cursor: CursorWrapper) -> None:
    for table, rows in _first_rows.items():
        _insert(cursor, table, rows)
        if table in WITHOUT_COUNTER:
            continue
        counter = f"pg_get_serial_sequence('{table}', 'id')"
        cursor.execute(f"SELECT setval({counter}, greatest(nextval({counter}), max(id))) FROM {table}")


def _insert(cursor: CursorWrapper, table: str, rows: str) -> None:
    # Where the log alone is emptied, they are still there.
    again = f"SELECT * FROM json_populate_recordset(NULL::{table}, %s) ON CONFLICT DO NOTHING"
    cursor.execute(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE {again}", [rows])
