"""Moves the notes of the fences, written in the agents' transactions, into the audit log."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import FenceOutbox, SessionRecord, SessionStore
from sessions_app.registry import WRITE_DROPPED

BATCH = 500


def drain_outbox() -> int:
    """Moves all notes, each once, even beside another worker; returns their number."""
    moved = 0
    while count := _move_batch():
        moved += count
    return moved


@transaction.atomic
def _move_batch() -> int:
    notes = list(FenceOutbox.objects.select_for_update(skip_locked=True).order_by("pk")[:BATCH])
    for note in notes:
        assert note.event == WRITE_DROPPED, f"unknown event {note.event}"
        record = SessionRecord.objects.filter(store_id=note.store_id, session_id=note.session_id).first()
        audit.record(
            audit_events.WRITE_DROPPED,
            by=audit.Actor("agent", f"an agent of store {note.store_id}"),
            target=record,
            subject=record and record.subject_id,
            outcome="denied",
            details={"happened_at": note.happened_at.isoformat()},
        )
        SessionStore.objects.filter(pk=note.store_id).update(dropped_writes=F("dropped_writes") + 1)
    FenceOutbox.objects.filter(pk__in=[note.pk for note in notes]).delete()
    return len(notes)
