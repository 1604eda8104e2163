"""Querysets of memories and reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.postgres.search import SearchQuery
from django.db import models
from django.db.models import OuterRef, Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from memories_app.models import Memory, Review
    from sessions_app.models import Subject


def asked(words: str) -> SearchQuery:
    """Query for statements with these words in any form, in the syntax of `websearch_to_tsquery`."""
    return SearchQuery(words, search_type="websearch", config="english")


class MemoryQuerySet(models.QuerySet["Memory"]):
    def awaiting_review(self) -> MemoryQuerySet:
        """Proposals and memories to re-validate, longest waiting first."""
        return self.filter(status__in=self.model.AWAITING).order_by("awaiting_since", "pk")

    def not_snoozed(self) -> MemoryQuerySet:
        """Without those snoozed now."""
        return self.filter(Q(snoozed_until=None) | Q(snoozed_until__lte=Now()))

    def needing_two(self) -> MemoryQuerySet:
        """Those that two people must approve: see Memory.needs_two. The condition of an index."""
        return self.filter(Q(subject__isnull=True) | ~Q(risk_flags=[]))

    def about(self, subject: Subject) -> MemoryQuerySet:
        """Memories of this subject and of all merged into it. One query for those."""
        return self.filter(subject__in=subject.group_ids())

    def recallable(self) -> MemoryQuerySet:
        """Memories that agents may recall now, before restriction by subject and agent."""
        return self.filter(
            Q(valid_from__isnull=True) | Q(valid_from__lte=Now()),
            Q(valid_until__isnull=True) | Q(valid_until__gt=Now()),
            status=self.model.Status.APPROVED,
        )

    def newest_first(self) -> MemoryQuerySet:
        return self.order_by("-proposed_at", "-pk")


class ReviewQuerySet(models.QuerySet["Review"]):
    def valid_approvals(self) -> ReviewQuerySet:
        """Approvals that count for the memory of an outer query, for `Exists`: see valid_approvals_of."""
        return self._valid_approvals(OuterRef("pk"), OuterRef("content_hash"), OuterRef("awaiting_since"))

    def valid_approvals_of(self, memory: Memory) -> ReviewQuerySet:
        """Approvals by people that the trigger `gate` counts for this memory: of its current text, since it began to
        wait, not undone. Those of deleted accounts do not count."""
        return self._valid_approvals(memory.pk, memory.content_hash, memory.awaiting_since)

    def _valid_approvals(self, memory: Any, content_hash: Any, awaiting_since: Any) -> ReviewQuerySet:
        return self.filter(
            memory=memory,
            decision=self.model.Decision.APPROVE,
            undone_at=None,
            content_hash=content_hash,
            decided_at__gte=awaiting_since,
            reviewer__isnull=False,
        )
