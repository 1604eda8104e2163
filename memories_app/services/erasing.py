"""Erasure of the text of one version of a memory. The row of the version stays."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from memadmin import audit
from memories_app import audit_events
from memories_app.audit_events import EraseReason
from memories_app.models import Memory, MemoryVersion
from memories_app.services.refusals import ErasedAlready, StillRead, UnderHold
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion


@transaction.atomic
def erase_version(version: MemoryVersion, *, by: User, reason: EraseReason) -> MemoryVersion:
    """Erases the text of a version, also for recalls that used it. Raises StillRead, ErasedAlready and UnderHold."""
    memory = Memory.objects.select_for_update(of=["self"]).defer("embedding", "words").get(pk=version.memory_id)
    version = MemoryVersion.objects.select_for_update().get(pk=version.pk)
    if version.erased_at:
        raise ErasedAlready(memory)
    if version.number == memory.version:
        raise StillRead(memory)
    sources = {one.record_id for one in memory.evidence.only("record_id") if one.record_id}
    try:
        check_deletion(records=sources, subjects=[memory.subject_id] if memory.subject_id else ())
    except DeletionRefused as refused:
        raise UnderHold(memory, str(refused)) from refused
    counters = {"version": version.number}
    audit.record(
        audit_events.VERSION_ERASED,
        by=by,
        target=memory,
        subject=memory.subject_id,
        counters=counters,
        reason_code=reason.value,
    )
    MemoryVersion.objects.filter(pk=version.pk).update(statement="", data={}, erased_at=Now())
    version.refresh_from_db()
    return version
