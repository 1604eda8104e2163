"""Clearing up what agents know: what is over or was never of use goes, what is old is asked about again, and what says
the same as another, or the opposite, is marked for who decides, or brought to them. Nothing is merged or
dropped because of a likeness.

Each change is a transaction and an event of its own, and what is to be done is seen from the rows: stopped anywhere and
called again, or called twice at once, it does what is left, once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now, TruncDate
from django.utils.timezone import now

from memadmin import audit
from memories_app import audit_events
from memories_app.audit_events import ExpiryReason
from memories_app.dedup import compare
from memories_app.dedup.candidates import compared_with
from memories_app.dedup.similarity import Hint, pairs
from memories_app.models import Memory, RecalledMemory
from memories_app.models.querysets import MemoryQuerySet
from memories_app.services.refusals import NotRecalled
from memories_app.services.retiring import STANDING, ask_revalidation

UNUSED_AFTER = timedelta(days=90)
"""So long after its approval a memory that no run was ever told is of no use."""

LOW_CONFIDENCE = 0.8
"""What is less certain than this, and approved by a rule alone, goes when it is of no use."""

LATELY = timedelta(hours=2)
"""Each hour's run looks at what happened within this time: at all of it twice, for some is committed late."""

BATCH = 200


@dataclass(slots=True)
class Consolidated:
    """How many memories changed, or would."""

    over: int = 0
    unused: int = 0
    to_revalidate: int = 0
    marked: int = 0
    to_end: int = 0
    """Proposed to end, because another one that is approved says the same, nearly, or the opposite."""


def over() -> MemoryQuerySet:
    """Approved once, and their time is over: agents do not recall them any more. Who is about to prolong one is waited
    for."""
    return _approved().filter(valid_until__lte=Now()).exclude(_has_proposals())


def unused() -> MemoryQuerySet:
    """No person ever approved them, they are not certain, old, and no run was told of them."""
    recalled = RecalledMemory.objects.filter(memory=OuterRef("pk"))
    return (
        _approved()
        .filter(is_verified=False, confidence__lt=LOW_CONFIDENCE, decided_at__lt=now() - UNUSED_AFTER)
        .exclude(Exists(recalled))
        .exclude(_has_proposals())
    )


def to_revalidate() -> MemoryQuerySet:
    """Their day has come: procedures above all, and whatever else has one. What is over is not asked about."""
    return _approved().filter(revalidate_on__lte=TruncDate(Now())).exclude(valid_until__lte=Now())


def preview() -> Consolidated:
    """What `consolidate` would do now, found by the same queries. What ends is still compared with, here alone."""
    return Consolidated(
        over=over().count(),
        unused=unused().exclude(pk__in=over().values("pk")).count(),
        to_revalidate=to_revalidate().exclude(pk__in=unused().values("pk")).count(),
        marked=sum(1 for _ in _wrongly_marked()),
        to_end=sum(1 for _ in compare.weaker_ones()),
    )


def consolidate(*, within: timedelta | None = None) -> Consolidated:
    """Does all there is to do, and returns what it did. Given `within`, what waits is marked anew only where something
    of the same subject came, was decided or changed within this time."""
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
    """Changes all that are due, each locked and still due then; returns how many it changed itself."""
    changed = 0
    # A batch is read anew after each: a cursor held open would keep the whole run in one snapshot.
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
    """What a memory is to be marked with, for which text, and because of which others."""

    hints: list[str]
    content_hash: str
    others: Collection[UUID]


# A decision that was undone is one, too: it leaves no other time.
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


def _to_look_at(within: timedelta | None) -> list[UUID]:
    """What waits, longest first; all of it, or what something new or changed could be like."""
    if within is None:
        return list(Memory.objects.awaiting_review().values_list("pk", flat=True))
    given: dict[str, Any] = {"since": now() - within, "awaiting": list(Memory.AWAITING)}
    with connection.cursor() as cursor:
        cursor.execute(WAITING_WHERE_SOMETHING_CHANGED, given)
        return [key for (key,) in cursor.fetchall()]


def _wrongly_marked(within: timedelta | None = None) -> Iterator[tuple[UUID, SimilarityMark]]:
    """Those that wait and are marked otherwise than they should be; two queries for every BATCH."""
    keys = _to_look_at(within)
    for start in range(0, len(keys), BATCH):
        some = keys[start : start + BATCH]
        found = _found_beside(some)
        marks = Memory.objects.filter(pk__in=some, status__in=Memory.AWAITING)
        for key, hints, content_hash in marks.values_list("pk", "hints", "content_hash"):
            right = found.get(key, SimilarityMark([], content_hash, ()))
            if hints != right.hints:
                yield key, right


def mark_beside(memory: Memory) -> list[str]:
    """Holds one that waits against all others, marks it, and returns the marks; for who cannot wait for the hour."""
    found = _found_beside([memory.pk]).get(memory.pk)
    if found is None:
        return []
    _mark(memory.pk, found)
    return found.hints


def _found_beside(ids: Collection[UUID]) -> dict[UUID, SimilarityMark]:
    compared = compared_with(ids, standing=STANDING)
    hashes = {one.id: one.content_hash for one, _, _ in compared}
    hints: dict[UUID, dict[UUID, Hint]] = {}
    for pair in pairs(compared):
        hints.setdefault(pair.one, {})[pair.other] = pair.hint
    return {
        one: SimilarityMark(sorted(set(others.values())), hashes[one], list(others)) for one, others in hints.items()
    }


@transaction.atomic
def _mark(key: UUID, found: SimilarityMark) -> bool:
    """Whether it was marked: not where its text changed meanwhile, or somebody decided or was quicker."""
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
