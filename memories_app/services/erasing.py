"""Erasure of the text of one version of a memory. The row of the version stays."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now

from memadmin import audit
from memories_app import audit_events
from memories_app.audit_events import EraseReason
from memories_app.models import Memory, MemoryVersion
from memories_app.services.refusals import ErasedAlready, StillRead


@transaction.atomic
def erase_version(version: MemoryVersion, *, by: User, reason: EraseReason) -> MemoryVersion:
    """Erases the text of a version, also for recalls that used it. Raises StillRead and ErasedAlready."""
    memory = Memory.objects.select_for_update(of=["self"]).defer("embedding", "words").get(pk=version.memory_id)
    version = MemoryVersion.objects.select_for_update().get(pk=version.pk)
    if version.erased_at:
        raise ErasedAlready(memory)
    if version.number == memory.version:
        raise StillRead(memory)
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
