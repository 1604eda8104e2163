"""Consolidation: expired and unused memories end, old ones return to review, and duplicates and contradictions are
marked for reviewers or proposed to them. Nothing is merged or dropped because of similarity.

Each change is a transaction and an event of its own, and due work is derived from the rows: after an interruption, or
when called twice at once, each change is made once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now, TruncDate
from django.utils.timezone import now

from memadmin import audit
from memadmin.batching import batched
from memories_app import audit_events
from memories_app.audit_events import ExpiryReason
from memories_app.dedup import compare
from memories_app.dedup.candidates import compared_with
from memories_app.dedup.similarity import Hint, pairs
from memories_app.models import Memory, RecalledMemory
from memories_app.models.querysets import MemoryQuerySet
from memories_app.services.refusals import NotRecalled
from memories_app.services.retiring import ask_revalidation

UNUSED_AFTER = timedelta(days=90)
"""Time after its approval at which a memory that no run used counts as unused."""

LOW_CONFIDENCE = 0.8
"""Below this confidence, memories approved only by a rule end when unused."""

LATELY = timedelta(hours=2)
"""Each hourly run checks changes within this time, all of them twice, because some are committed late."""

BATCH = 200


@dataclass(slots=True)
class Consolidated:
    """Numbers of changed memories, or of those that would change."""

    over: int = 0
    unused: int = 0
    to_revalidate: int = 0
    marked: int = 0
    to_end: int = 0
    """Proposed ends of duplicates, near duplicates and contradictions of approved memories."""


def over() -> MemoryQuerySet:
    """Approved memories after the end of their validity. Those with a waiting proposal of a change are left out."""
    return _approved().filter(valid_until__lte=Now()).exclude(_has_proposals())


def unused() -> MemoryQuerySet:
    """Memories never approved by a person, of low confidence, old, and not used in any run."""
    recalled = RecalledMemory.objects.filter(memory=OuterRef("pk"))
    return (
        _approved()
        .filter(is_verified=False, confidence__lt=LOW_CONFIDENCE, decided_at__lt=now() - UNUSED_AFTER)
        .exclude(Exists(recalled))
        .exclude(_has_proposals())
    )


def to_revalidate() -> MemoryQuerySet:
    """Memories due for re-validation, mainly procedures. Expired ones are left out."""
    return _approved().filter(revalidate_on__lte=TruncDate(Now(), tzinfo=UTC)).exclude(valid_until__lte=Now())


def preview() -> Consolidated:
    """The counts of a `consolidate` now, by the same queries, without a change. Unlike there, memories that would end
    are still compared."""
    return Consolidated(
        over=over().count(),
        unused=unused().exclude(pk__in=over().values("pk")).count(),
        to_revalidate=to_revalidate().exclude(pk__in=unused().values("pk")).count(),
        marked=sum(1 for _ in _wrongly_marked()),
        to_end=sum(1 for _ in compare.weaker_ones()),
    )


def consolidate(*, within: timedelta | None = None) -> Consolidated:
    """Makes all due changes, and returns their numbers. With `within`, proposals are marked again only if a memory of
    the same subject was added, decided or changed within this time."""
    return Consolidated(
        over=_each(over, lambda memory: _expire(memory, ExpiryReason.OVER)),
        unused=_each(unused, lambda memory: _expire(memory, ExpiryReason.UNUSED)),
        to_revalidate=_each(to_revalidate, _send_back),
        marked=sum(_mark(key, found) for key, found in _wrongly_marked(within)),
        to_end=compare.compare_approved(),
    )


def _approved() -> MemoryQuerySet:
    return Memory.objects.filter(status=Memory.Status.APPROVED)


def _has_proposals() -> Exists:
    return Exists(Memory.objects.filter(replaces=OuterRef("pk"), status__in=Memory.AWAITING))


def _each(due: Callable[[], MemoryQuerySet], change: Callable[[Memory], None]) -> int:
    """Changes all due memories, each locked and still due then; returns the number of its own changes."""
    changed = 0
    # Each batch is a new query: an open cursor would keep the whole run in one snapshot.
    last = UUID(int=0)
    while keys := list(due().filter(pk__gt=last).order_by("pk").values_list("pk", flat=True)[:BATCH]):
        for key in keys:
            with transaction.atomic(), suppress(NotRecalled):
                memory = due().filter(pk=key).select_for_update(of=("self",)).defer("embedding", "words").first()
                if memory is not None:
                    change(memory)
                    changed += 1
        last = keys[-1]
    return changed


def _expire(memory: Memory, reason: ExpiryReason) -> None:
    audit.record(audit_events.MEMORY_EXPIRED, target=memory, subject=memory.subject_id, reason_code=reason)
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.EXPIRED, decided_at=Now())


def _send_back(memory: Memory) -> None:
    ask_revalidation(memory)


# --- marking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SimilarityMark:
    """Marks of a memory, the text that they are for, and the other memories."""

    hints: list[str]
    content_hash: str
    others: Collection[UUID]


# An undone decision counts, too: it leaves no other time.
WAITING_WHERE_SOMETHING_CHANGED = """
WITH lately AS (
    SELECT subject_id FROM memories_app_memory
    WHERE proposed_at > %(since)s OR awaiting_since > %(since)s OR decided_at > %(since)s
    UNION
    SELECT m.subject_id FROM memories_app_memory AS m JOIN (
        SELECT memory_id FROM memories_app_review WHERE decided_at > %(since)s
        UNION SELECT memory_id FROM memories_app_memoryversion WHERE created_at > %(since)s
    ) AS changed ON changed.memory_id = m.id
), whose AS (
    SELECT unnest(memadmin_subject_group(subject_id)) AS id FROM lately WHERE subject_id IS NOT NULL
)
SELECT id FROM memories_app_memory
WHERE status = ANY (%(awaiting)s)
      AND (subject_id IN (SELECT id FROM whose)
           OR subject_id IS NULL AND EXISTS (SELECT FROM lately WHERE subject_id IS NULL))
ORDER BY awaiting_since, id
"""


def _to_compare(within: timedelta | None) -> list[UUID]:
    """Proposals, longest waiting first; all, or those that could resemble something new or changed."""
    if within is None:
        return list(Memory.objects.awaiting_review().values_list("pk", flat=True))
    given: dict[str, Any] = {"since": now() - within, "awaiting": list(Memory.AWAITING)}
    with connection.cursor() as cursor:
        cursor.execute(WAITING_WHERE_SOMETHING_CHANGED, given)
        return [key for (key,) in cursor.fetchall()]


def _wrongly_marked(within: timedelta | None = None) -> Iterator[tuple[UUID, SimilarityMark]]:
    """Proposals with wrong marks, and the right ones; two queries for each BATCH."""
    for some in batched(_to_compare(within), BATCH):
        found = _marks_against_others(some)
        marks = Memory.objects.filter(pk__in=some, status__in=Memory.AWAITING)
        for key, hints, content_hash in marks.values_list("pk", "hints", "content_hash"):
            right = found.get(key, SimilarityMark([], content_hash, ()))
            if hints != right.hints:
                yield key, right


def mark_against_others(memory: Memory) -> list[str]:
    """Compares a proposal with all others, marks it, and returns the marks, without waiting for the job."""
    found = _marks_against_others([memory.pk]).get(memory.pk)
    if found is None:
        return []
    _mark(memory.pk, found)
    return found.hints


def _marks_against_others(ids: Collection[UUID]) -> dict[UUID, SimilarityMark]:
    compared = compared_with(ids, statuses=Memory.CURRENT)
    hashes = {one.id: one.content_hash for one, _, _ in compared}
    hints: dict[UUID, dict[UUID, Hint]] = {}
    for pair in pairs(compared):
        hints.setdefault(pair.one, {})[pair.other] = pair.hint
    return {
        one: SimilarityMark(sorted(set(others.values())), hashes[one], list(others)) for one, others in hints.items()
    }


@transaction.atomic
def _mark(key: UUID, found: SimilarityMark) -> bool:
    """Whether it was marked: False if its text changed meanwhile, or another process decided or marked it."""
    memory = (
        Memory.objects.select_for_update()
        .only("subject", "hints")
        .filter(pk=key, content_hash=found.content_hash, status__in=Memory.AWAITING)
    )
    waiting = memory.first()
    if waiting is None or waiting.hints == found.hints:
        return False
    audit.record(
        audit_events.MEMORY_MARKED,
        target=waiting,
        subject=waiting.subject_id,
        counters={hint.value: int(hint in found.hints) for hint in Hint},
        details={"others": [str(other) for other in found.others][:100]},
    )
    Memory.objects.filter(pk=key).update(hints=found.hints)
    return True
