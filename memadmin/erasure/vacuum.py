"""VACUUM of the tables from which an erasure deleted: the text of deleted rows stays in their pages until then."""

from __future__ import annotations

from memadmin.erasure.exceptions import OutOfReach
from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.preview import out_of_reach_row, out_of_reach_rows, replace_out_of_reach
from memadmin.retention.vacuum import TIMEOUT, vacuum
from memadmin.runs.engine import Lease
from sessions_app.models import SessionStore

KEY = "vacuumed"

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
        is_vacuumed = vacuum(table)
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
    for store in SessionStore.objects.in_this_database():
        if store.name in places:
            found |= {store.sessions_table, store.messages_table}
    return sorted(found)
