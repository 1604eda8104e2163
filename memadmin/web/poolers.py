"""Connections through a pooler, such as pgbouncer: in its transaction mode a connection changes its server session."""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper


def is_pooled(connection: BaseDatabaseWrapper) -> bool:
    """Whether a pooler is between this connection and the server. One query.

    Poolers invent the number of the server process that they report to a client when it connects.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return bool(connection.connection.info.backend_pid != pid)
