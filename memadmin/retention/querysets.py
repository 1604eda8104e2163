"""Querysets of legal holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.utils.timezone import now

from memadmin.counting import count_up_to

if TYPE_CHECKING:
    from memadmin.retention.models import LegalHold


class LegalHoldQuerySet(models.QuerySet["LegalHold"]):
    def in_force(self) -> LegalHoldQuerySet:
        """Holds that were not released, the newest first."""
        return self.filter(released_at__isnull=True).order_by("-number", "-pk")

    def to_decide(self) -> LegalHoldQuerySet:
        """Holds whose release was requested, the longest waiting first."""
        return self.filter(released_at__isnull=True, release_requested_at__isnull=False).order_by(
            "release_requested_at", "pk"
        )

    def due_for_review(self) -> LegalHoldQuerySet:
        """Holds in force whose review date has come."""
        return self.in_force().filter(review_on__lte=now().date())

    def released(self) -> LegalHoldQuerySet:
        """Released holds, the newest first."""
        return self.filter(released_at__isnull=False).order_by("-number", "-pk")

    def with_names(self) -> LegalHoldQuerySet:
        """Holds with everything that lists show. One query more."""
        return self.select_related(
            "owner", "placed_by", "release_requested_by", "released_by", "subject"
        ).prefetch_related("subject__aliases")


def count_to_decide() -> int:
    """Number of requested releases for the sidebar, at most 1,001. One query."""
    from memadmin.retention.models import LegalHold

    return count_up_to(LegalHold.objects.to_decide())
