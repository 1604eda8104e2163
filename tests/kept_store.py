"""The main store on the agents' tables, attached once for tests with real transactions that follow each other.

To create the tables, attach the store, and drop everything takes longer than most tests. Instead, rows go after each
test and those of the store come back. A test that changed more than rows ends the store: the next one gets another.
"""

from __future__ import annotations

from django.core.management import call_command
from django.db import connection

from memadmin.deploy.roles import Roles
from sessions_app import registry
from sessions_app.models import SessionStore
from tests.agents import agent_process, attach_main_store, drop_agent_tables
from tests.deploy.connecting import bring_into_force
from tests.flushing import forget_kept_rows, keep_rows

TABLES = ("agent_messages", "agent_sessions")

SHAPE = """
WITH tables AS (
    SELECT pg_class.* FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND nspname !~ '^pg_(toast_)?temp_'
), agents AS (
    SELECT oid FROM tables WHERE relname = ANY(%(tables)s)
)
SELECT
    (SELECT array_agg((oid, relname, relowner, relacl, reloptions, relrowsecurity, relpersistence)::text ORDER BY oid)
     FROM tables),
    (SELECT array_agg((attrelid, attnum, attname, atttypid, atttypmod, attnotnull, attacl)::text
                      ORDER BY attrelid, attnum)
     FROM pg_attribute WHERE attrelid IN (SELECT oid FROM agents)),
    (SELECT array_agg(pg_trigger::text ORDER BY oid) FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM agents)),
    (SELECT array_agg(pg_constraint::text ORDER BY oid) FROM pg_constraint WHERE conrelid IN (SELECT oid FROM agents)),
    (SELECT array_agg((indexrelid, indisvalid)::text ORDER BY indexrelid)
     FROM pg_index WHERE indrelid IN (SELECT oid FROM agents)),
    (SELECT array_agg(pg_proc::text ORDER BY oid) FROM pg_proc WHERE proname LIKE 'memadmin%%')
"""
"""All that a test may have changed besides rows."""


class KeptMainStore:
    def __init__(self) -> None:
        self._shape: tuple[object, ...] | None = None
        self._in_force: Roles | None = None

    def begin(self) -> SessionStore:
        """The main store, attached, without sessions."""
        if self._shape is None:
            attach_main_store()
            keep_rows(TABLES)
            self._shape = shape()
        return SessionStore.objects.get(name=registry.MAIN_STORE)

    def bring_into_force(self, names: Roles) -> None:
        """Makes roles of the database responsible for its tables, too."""
        if self._in_force != names:
            bring_into_force(names)
            self._in_force, self._shape = names, shape()

    def after_test(self) -> None:
        """Ends it if more than rows was changed; rows go, and come back, when Django's tables are emptied."""
        if self._shape != shape():
            self._drop()

    def end(self) -> None:
        if self._shape is not None:
            self._drop()
            call_command("flush", interactive=False, verbosity=0)
            connection.close()

    def _drop(self) -> None:
        self._shape = self._in_force = None
        agent_process.end()
        drop_agent_tables()
        forget_kept_rows()


kept_main_store = KeptMainStore()


def shape() -> tuple[object, ...]:
    with connection.cursor() as cursor:
        cursor.execute(SHAPE, {"tables": list(TABLES)})
        return tuple(cursor.fetchone())
