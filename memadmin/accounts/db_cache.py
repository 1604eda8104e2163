"""A cache in the database for data shared by all processes and machines: counts of failed attempts, used codes.

Django's own unpickles values, so write access to one row of its table runs code in the web server; it counts all rows
at each write; and above a limit it evicts entries, which an attacker can provoke. This one stores JSON, costs the same
at any size, and deletes only expired rows.
"""

from __future__ import annotations

import json
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection

SWEPT = 100
"""Number of expired rows deleted with each write, so that the table stays small."""

UPSERT = """
    INSERT INTO memadmin_cache AS kept (key, value, expires_at)
    VALUES (%s, %s, statement_timestamp() + make_interval(secs => %s))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
"""
SWEEP = """
    DELETE FROM memadmin_cache WHERE key IN (
        SELECT key FROM memadmin_cache WHERE expires_at <= statement_timestamp()
        ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED
    )
"""


class TableCache(BaseCache):
    """A cache of JSON values with expiry."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Whether the key was added; of two concurrent calls only one returns True."""
        return bool(
            self._write(f"{UPSERT} WHERE kept.expires_at <= statement_timestamp()", key, value, timeout, version)
        )

    def set(self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._write(UPSERT, key, value, timeout, version)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        sql = "SELECT value FROM memadmin_cache WHERE key = %s AND expires_at > statement_timestamp()"
        with connection.cursor() as cursor:
            cursor.execute(sql, [self.make_key(key, version=version)])
            row = cursor.fetchone()
        return json.loads(row[0]) if row else default

    def delete(self, key: str, version: int | None = None) -> bool:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM memadmin_cache WHERE key = %s", [self.make_key(key, version=version)])
            return bool(cursor.rowcount)

    def clear(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM memadmin_cache")

    def _write(self, sql: str, key: str, value: Any, timeout: Any, version: int | None) -> int:
        seconds = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        with connection.cursor() as cursor:
            cursor.execute(SWEEP, [SWEPT])
            cursor.execute(sql, [self.make_key(key, version=version), json.dumps(value), seconds])
            return int(cursor.rowcount)
