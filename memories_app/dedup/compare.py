"""Comparison of approved memories with each other: duplicates, near duplicates, and memories on the same topic.

They result from merged subjects, from approvals of both, and from imports. Nothing is merged or dropped automatically:
the end of the weaker one is proposed, and people decide. Agents recall both until then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils.timezone import now

from memories_app.dedup.candidates import compared_with
from memories_app.dedup.similarity import Pair, pairs
from memories_app.learning.proposing import propose_memory
from memories_app.models import Memory
from memories_app.models.querysets import MemoryQuerySet
from memories_app.services.refusals import MemoryActionRefused
from memories_app.vector_column import uses_vectors
from sessions_app.services.subjects import merge_target

EXTRACTOR = "consolidation/1"

BATCH = 200

MOST_COMPARED = 20_000
"""Maximum in one run; the next run continues. So an upgrade with a million memories does not block."""


def to_compare() -> MemoryQuerySet:
    """Approved memories with a vector, not compared in their current text or since a merge of their subject."""
    approved = Memory.objects.filter(status=Memory.Status.APPROVED)
    ready = approved.filter(embedding__isnull=False) if uses_vectors() else approved
    return ready.filter(
        ~Q(compared_hash=F("content_hash"))
        | Q(subject__merged_into__isnull=False) & (Q(compared_under=F("subject")) | Q(compared_under=None))
    )


def compare_approved(*, limit: int = MOST_COMPARED) -> int:
    """Compares up to `limit` due memories, and returns the number of proposed ends.

    Four queries for each BATCH, and some for each found pair. Safe to stop anywhere and to call again.
    """
    proposed = 0
    for due in _batches(limit):
        proposed += sum(_propose_end_of_weaker(pair) for pair in _pairs_of(due))
        for memory in due:
            memory.compared_hash = memory.content_hash
            memory.compared_under = merge_target(memory.subject).pk if memory.subject else None
        # A text that changed meanwhile is still due: its hash differs.
        Memory.objects.bulk_update(due, ["compared_hash", "compared_under"])
    return proposed


def weaker_ones() -> set[UUID]:
    """Memories whose end `compare_approved` would propose now."""
    found = set()
    for due in _batches(MOST_COMPARED):
        for pair in _pairs_of(due):
            weaker = _weaker_of(list(_both(pair)))
            if weaker is not None and not _was_proposed(weaker):
                found.add(weaker.pk)
    return found


def _batches(limit: int) -> Iterator[list[Memory]]:
    last = UUID(int=0)
    columns = ("content_hash", "subject", "subject__merged_into")
    for _ in range(0, limit, BATCH):
        due = list(to_compare().filter(pk__gt=last).select_related("subject").only(*columns).order_by("pk")[:BATCH])
        if not due:
            return
        yield due
        last = due[-1].pk


def _pairs_of(memories: Sequence[Memory]) -> list[Pair]:
    """Each pair once."""
    found = pairs(compared_with([memory.pk for memory in memories], statuses=[Memory.Status.APPROVED]))
    return list({frozenset((pair.one, pair.other)): pair for pair in found}.values())


def _both(pair: Pair) -> MemoryQuerySet:
    return Memory.objects.filter(pk__in=[pair.one, pair.other]).recallable().order_by("pk")


def _weaker_of(memories: Sequence[Memory]) -> Memory | None:
    return max(memories, key=_precedence) if len(memories) == 2 else None


def _was_proposed(memory: Memory) -> bool:
    """Whether the end was proposed before: once for each text, so that rejected proposals do not come back."""
    return Memory.objects.filter(replaces=memory, base_version=memory.version, extractor=EXTRACTOR).exists()


@transaction.atomic
def _propose_end_of_weaker(pair: Pair) -> bool:
    """Whether the end of the weaker one was proposed now."""
    weaker = _weaker_of(list(_both(pair).select_for_update(of=("self",), no_key=True)))
    if weaker is None or _was_proposed(weaker):
        return False
    try:
        proposal = propose_memory(
            weaker.statement,
            extractor=EXTRACTOR,
            replaces=weaker,
            **weaker.proposal_columns() | {"valid_until": now()},
        )
    except MemoryActionRefused:
        # Learning was stopped for this subject; or the memory ends anyway.
        return False
    # Until it has a vector and is marked by the regular job.
    Memory.objects.filter(pk=proposal.pk).update(hints=[pair.hint.value])
    return True


def _precedence(memory: Memory) -> tuple[bool, bool, float, str]:
    """Sort key: the weaker of two memories is greater, as for agents between equals (memadmin.client.recalling)."""
    decided_at = memory.decided_at or memory.proposed_at
    is_explicit = memory.provenance == Memory.Provenance.EXPLICIT
    return (not memory.is_verified, not is_explicit, -decided_at.timestamp(), str(memory.pk))
