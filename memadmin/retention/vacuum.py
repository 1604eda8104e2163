"""VACUUM of one table: deleted rows stay in its pages, with their text, until then."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import Error, connection
from psycopg import sql

from sessions_app.stores.sqlalchemy.postgres import table_identifier

logger = logging.getLogger(__name__)

TIMEOUT = timedelta(minutes=10)
"""Time that one table may take."""

MAY = "SELECT to_regclass(%s) IS NOT NULL AND has_table_privilege(to_regclass(%s), 'MAINTAIN')"

OWNS = """
SELECT to_regclass(%s) IS NOT NULL AND pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass(%s)
"""
"""The same before PostgreSQL 17, which has introduced that right."""


def vacuum(table: str, *, analyze: bool = False) -> bool:
    """Whether a table, and each of its partitions, was vacuumed; never in a transaction, and never FULL.

    PostgreSQL skips a table, with a warning, that the role may not vacuum. Takes TIMEOUT at most.
    """
    if connection.in_atomic_block:
        return False
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version_num")
            identifier = table_identifier(table)
            name = identifier.as_string(None)
            cursor.execute(MAY if int(cursor.fetchone()[0]) >= 170000 else OWNS, [name, name])
            row = cursor.fetchone()
            if not row or not row[0]:
                return False
            cursor.execute("SELECT set_config('statement_timeout', %s, false)", [f"{TIMEOUT.total_seconds():.0f}s"])
            try:
                options = sql.SQL("(ANALYZE) " if analyze else "")
                cursor.execute(sql.SQL("VACUUM {}{}").format(options, identifier))
            finally:
                cursor.execute("RESET statement_timeout")
    except Error as problem:
        logger.warning("%s was not vacuumed: %s", table, type(problem).__name__)
        return False
    return True
