"""Querysets of memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.postgres.search import SearchQuery
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

if TYPE_CHECKING:
    from memories_app.models import Memory
    from sessions_app.models import Subject


APPROVED_ONCE = Q(approval__decision="", approval__asked_by__isnull=False)


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

    def approved_once(self) -> MemoryQuerySet:
        """Those whose first approval waits for the second; one by an account that is deleted does not count."""
        return self.filter(APPROVED_ONCE)

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
