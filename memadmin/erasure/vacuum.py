"""VACUUM of the tables from which an erasure deleted: the text of deleted rows stays in their pages until then."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import Error, connection
from psycopg import sql

from memadmin.erasure.exceptions import OutOfReach
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.preview import out_of_reach_row, out_of_reach_rows, replace_out_of_reach
from memadmin.erasure.scan.sessions import stores_here
from memadmin.runs.engine import Lease
from sessions_app.stores.sqlalchemy.postgres import table_identifier

logger = logging.getLogger(__name__)

KEY = "vacuumed"

TIMEOUT = timedelta(minutes=10)
"""Time that one table may take."""

OF_STEPS = {
    "sessions": ("sessions_app_sessionrecord",),
    "findings": ("sessions_app_sessionfinding",),
    "shared_memories": ("memories_app_memory", "memories_app_evidence"),
    "recalls": ("memories_app_recall", "memories_app_recalledmemory"),
    "reviews": ("memories_app_review",),
    "versions": ("memories_app_memoryversion",),
    "evidence": ("memories_app_evidence",),
    "signals": ("memories_app_signal",),
    "distillations": ("memories_app_distillation",),
    "memories": ("memories_app_memory",),
    "searches": ("sessions_app_textsearch",),
    "redactions": ("sessions_app_redaction",),
    "grants": ("accounts_contentgrant",),
    "admin_log": ("django_admin_log",),
    "audit_details": ("audit_detail",),
    "identity": ("sessions_app_subjectalias", "sessions_app_sessionrecord"),
}

MAY = "SELECT to_regclass(%s) IS NOT NULL AND has_table_privilege(to_regclass(%s), 'MAINTAIN')"

OWNS = """
SELECT to_regclass(%s) IS NOT NULL AND pg_has_role(relowner, 'MEMBER') FROM pg_class WHERE oid = to_regclass(%s)
"""
"""The same before PostgreSQL 17, which has introduced that right."""


def vacuum_touched(lease: Lease, request: SubjectRequest) -> None:
    """Vacuums the tables from which the steps erased rows, once, outside of a transaction.

    Tables that the role may not vacuum, and those for which that fails, are noted as out of reach: autovacuum comes to
    them by itself.
    """
    if KEY not in lease.run.cursor:
        note_vacuumed(lease, request, [], skipped=0)
    for table in touched_tables(request):
        done = lease.run.cursor[KEY]
        if table in done:
            continue
        lease.extend(TIMEOUT)
        # Vacuum cannot run in a transaction; then it is left to autovacuum, too.
        is_vacuumed = not connection.in_atomic_block and vacuum(table)
        skipped = [row["count"] for row in out_of_reach_rows(request, OutOfReach.NOT_VACUUMED)]
        note_vacuumed(lease, request, [*done, table], skipped=sum(skipped) + (not is_vacuumed))


def note_vacuumed(lease: Lease, request: SubjectRequest, done: list[str], *, skipped: int) -> None:
    """Saves which tables were handled, and how many of them were not vacuumed."""
    with lease.chunk() as run:
        run.cursor = {**run.cursor, KEY: done}
        locked = SubjectRequest.objects.select_for_update().get(pk=request.pk)
        rows = [out_of_reach_row(OutOfReach.NOT_VACUUMED, count=skipped)] if skipped else []
        replace_out_of_reach(locked, OutOfReach.NOT_VACUUMED, rows)
    request.refresh_from_db()


def touched_tables(request: SubjectRequest) -> list[str]:
    """Names of the tables, of ours and of the agents', from which the steps of a case erased rows."""
    erased = ErasureStep.objects.filter(request=request, erased__gt=0).values_list("name", "place")
    found = {table for name, _ in erased for table in OF_STEPS.get(name, ())}
    places = {place for _, place in erased}
    for store in stores_here():
        if store.name in places:
            found |= {store.sessions_table, store.messages_table}
    return sorted(found)


def vacuum(table: str) -> bool:
    """Whether the table was vacuumed. PostgreSQL skips a table, with a warning, that the role may not vacuum."""
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
                cursor.execute(sql.SQL("VACUUM {}").format(identifier))
            finally:
                cursor.execute("RESET statement_timeout")
    except Error as problem:
        logger.warning("%s was not vacuumed: %s", table, type(problem).__name__)
        return False
    return True
