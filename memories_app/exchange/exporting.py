"""Export of memories for another system or console: one JSON object each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from memadmin import audit
from memadmin.web.paging import in_batches
from memories_app import audit_events
from memories_app.exchange.formats import OWN
from memories_app.models import Memory
from memories_app.models.querysets import MemoryQuerySet
from sessions_app.models import Subject, SubjectAlias

AT_ONCE = 500


def to_export(*, subject: Subject | None = None, statuses: Sequence[str] = ()) -> MemoryQuerySet:
    """Memories of one subject or all, in these states or any. Ordered by id, so that exports have the same order."""
    memories = Memory.objects.about(subject) if subject else Memory.objects.all()
    return (memories.filter(status__in=statuses) if statuses else memories).order_by("pk")


def export_memories(*, subject: Subject | None = None, statuses: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Each memory in the format of `import_memories`. Commits its event first: raises AuditUnavailable.

    Reads AT_ONCE rows at a time, by key, three queries each.
    """
    chosen = to_export(subject=subject, statuses=statuses)
    audit.before_showing(audit_events.MEMORIES_EXPORTED, subject=subject, counters={"memories": chosen.count()})
    rows = chosen.defer("embedding", "words").prefetch_related("evidence")
    for page in in_batches(rows, AT_ONCE):
        keys = _keys_of(page)
        for memory in page:
            yield _line(memory, keys)


def _keys_of(memories: Sequence[Memory]) -> dict[Any, tuple[str, str]]:
    """The first id of each subject, which represents it."""
    aliases = SubjectAlias.objects.filter(subject__in={memory.subject_id for memory in memories if memory.subject_id})
    keys: dict[Any, tuple[str, str]] = {}
    for alias in aliases.order_by("-is_primary", "pk"):
        keys.setdefault(alias.subject_id, (alias.kind, alias.key))
    return keys


def _line(memory: Memory, keys: dict[Any, tuple[str, str]]) -> dict[str, Any]:
    whose = None
    if memory.subject_id:
        kind, key = keys.get(memory.subject_id, ("", ""))
        whose = {"kind": kind, "key": key}
    return {
        "format": OWN,
        "id": str(memory.pk),
        "subject": whose,
        "kind": memory.kind,
        "key": memory.key,
        "statement": memory.statement,
        "data": memory.data,
        "agents": memory.agents,
        "provenance": memory.provenance,
        "source": memory.source,
        "confidence": memory.confidence,
        "valid_from": _iso(memory.valid_from),
        "valid_until": _iso(memory.valid_until),
        "revalidate_on": _iso(memory.revalidate_on),
        "status": memory.status,
        "version": memory.version,
        "is_verified": memory.is_verified,
        "extractor": memory.extractor,
        "proposed_at": _iso(memory.proposed_at),
        "decided_at": _iso(memory.decided_at),
        "evidence": [
            {
                "quote": evidence.quote,
                "speaker": evidence.speaker,
                "session_id": evidence.session_id,
                "item_id": evidence.item_id,
                "said_at": _iso(evidence.said_at),
            }
            for evidence in memory.evidence.all()
            if evidence.gone_at is None
        ],
    }


def _iso(time: Any) -> str | None:
    return time.isoformat() if time else None
