"""Retirement of memories: one, or all from an untrusted session or tool."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from memadmin import audit
from memadmin.audit.log.recording import MOST_SHOWN
from memories_app import audit_events
from memories_app.audit_events import RetireReason
from memories_app.models import Evidence, Memory, Review
from memories_app.services.refusals import NotRecalled, gate_explained


@transaction.atomic
def retire_memory(memory: Memory, *, by: User, reason: RetireReason) -> Memory:
    """Retires a memory: agents no longer recall it from their next run on. Its change proposals end, too. Raises
    NotRecalled."""
    memory = Memory.objects.select_for_update().get(pk=memory.pk)
    if memory.status not in Memory.CURRENT:
        raise NotRecalled(memory)
    audit.record(audit_events.MEMORY_RETIRED, by=by, target=memory, subject=memory.subject_id, reason_code=reason)
    with gate_explained(memory):
        Review.objects.create(
            memory=memory, reviewer=by, decision="retire", reason_code=reason, content_hash=memory.content_hash
        )
    going = Memory.objects.filter(pk=memory.pk) | Memory.objects.filter(replaces=memory, status__in=Memory.AWAITING)
    going.update(status=Memory.Status.RETIRED, decided_at=Now(), claimed_by=None, claimed_until=None)
    memory.refresh_from_db()
    return memory


@transaction.atomic
def ask_revalidation(memory: Memory, *, by: User | None = None) -> Memory:
    """Returns an approved memory to the queue; agents do not recall it until it is approved again.

    Raises NotRecalled.
    """
    memory = Memory.objects.select_for_update().get(pk=memory.pk)
    if memory.status != Memory.Status.APPROVED:
        raise NotRecalled(memory)
    audit.record(audit_events.REVALIDATION_ASKED, by=by, target=memory, subject=memory.subject_id)
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.NEEDS_REVALIDATION, awaiting_since=Now())
    memory.refresh_from_db()
    return memory


def learned_from(record_id: UUID) -> QuerySet[Memory]:
    """Current memories learned from a session, newest first."""
    return _current(Evidence.objects.filter(record_id=record_id))


def learned_by_tool(tool: str) -> QuerySet[Memory]:
    """Current memories that may come from a tool: its output, or later messages of the assistant; newest first."""
    return _current(Evidence.objects.filter(tools__contains=[tool]))


def _current(sources: QuerySet[Evidence]) -> QuerySet[Memory]:
    return Memory.objects.filter(pk__in=sources.values("memory"), status__in=Memory.CURRENT).newest_first()


def retire_learned_from(record_id: UUID, *, by: User, reason: RetireReason) -> int:
    """Retires all memories learned from a session, each in its own transaction, and returns their number.

    Safe to repeat: memories left by a crash are found again.
    """
    return _retire_each(learned_from(record_id), by=by, reason=reason)


def retire_learned_by_tool(tool: str, *, by: User, reason: RetireReason) -> int:
    """Retires all memories that may come from a tool. The action has an event before those of the memories."""
    going = learned_by_tool(tool)
    first = list(going.values_list("pk", flat=True)[:MOST_SHOWN])
    with transaction.atomic():
        audit.record(
            audit_events.TOOL_RETIRED,
            by=by,
            shown=first,
            reason_code=reason,
            counters={"memories": going.count()},
            details={"tool": tool},
        )
    return _retire_each(going, by=by, reason=reason)


def _retire_each(memories: QuerySet[Memory], *, by: User, reason: RetireReason) -> int:
    count = 0
    for memory in memories.only("pk").iterator():
        try:
            retire_memory(memory, by=by, reason=reason)
        except NotRecalled:
            # Another user was faster.
            continue
        count += 1
    return count
