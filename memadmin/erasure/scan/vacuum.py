"""VACUUM of the tables from which erasures deleted: the text of deleted rows stays in their pages until then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scan.progress import Progress
from memadmin.retention.vacuum import TIMEOUT, vacuum
from memadmin.runs.engine import Lease
from sessions_app.models import SessionStore

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


def vacuum_touched(lease: Lease, touched: Mapping[int, set[str]], progress: Progress) -> None:
    """Vacuums the tables from which the steps of cases erased rows, once, outside of a transaction.

    Notes tables that the role may not vacuum, and those for which that fails: autovacuum comes to them by itself.
    """
    for table in sorted(set().union(*touched.values())):
        part = f"vacuum {table}"
        if progress.is_done(part):
            continue
        progress.begin(part)
        lease.extend(TIMEOUT)
        if not vacuum(table):
            progress.state["not_vacuumed"].append(table)
        progress.finish(part)


def touched_tables(requests: Sequence[SubjectRequest]) -> dict[int, set[str]]:
    """Names of the tables, of ours and of the agents', from which the steps of each case erased rows. Two queries."""
    found: dict[int, set[str]] = {request.pk: set() for request in requests}
    agents = {
        store.name: (store.sessions_table, store.messages_table) for store in SessionStore.objects.in_this_database()
    }
    erased = ErasureStep.objects.filter(request__in=requests, erased__gt=0)
    for case, name, place in erased.values_list("request", "name", "place"):
        # The erasure of governed rows adds details to the log, which it deletes and does not count.
        found[case].update(OF_STEPS.get(name, ()), agents.get(place, ()), OF_STEPS["audit_details"])
    return found
