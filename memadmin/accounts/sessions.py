"""The signed-in sessions of Django, read by a query that is written down (settings.SESSION_ENGINE)."""

from __future__ import annotations

from typing import Any

from django.contrib.sessions.backends import db
from django.db import connection
from django.utils.timezone import now

READ = "SELECT session_data FROM django_session WHERE session_key = %s AND expire_date > %s"


class SessionStore(db.SessionStore):
    """Every request begins with one: Django takes longer to compile its query than PostgreSQL to answer it."""

    def load(self) -> dict[str, Any]:
        with connection.cursor() as cursor:
            cursor.execute(READ, [self.session_key, now()])
            row = cursor.fetchone()
        if row is None:
            self._session_key = None
            return {}
        return self.decode(row[0])
