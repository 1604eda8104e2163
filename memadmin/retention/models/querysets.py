"""Querysets of legal holds, policies and sweeps."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING
from uuid import UUID

from django.db import models
from django.db.models import OuterRef, Q, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin.accounts.approvals.models import waits
from memadmin.counting import count_up_to

if TYPE_CHECKING:
    from memadmin.retention.models import LegalHold, PolicyVersion, SweepResult


class LegalHoldQuerySet(models.QuerySet["LegalHold"]):
    def in_force(self) -> LegalHoldQuerySet:
        """Holds that were not released, the newest first."""
        return self.filter(released_at__isnull=True).order_by("-number", "-pk")

    def to_decide(self) -> LegalHoldQuerySet:
        """Holds whose release was requested, the longest waiting first."""
        return self.filter(waits(now(), "approval__")).order_by("approval__asked_at", "pk")

    def due_for_review(self) -> LegalHoldQuerySet:
        """Holds in force whose review date has come."""
        return self.in_force().filter(review_on__lte=now().date())

    def released(self) -> LegalHoldQuerySet:
        """Released holds, the newest first."""
        return self.filter(released_at__isnull=False).order_by("-number", "-pk")

    def covering(self, record_ids: Collection[UUID], subject_ids: Collection[UUID] = ()) -> LegalHoldQuerySet:
        """Holds in force on any of these session records or subjects, by number."""
        numbers = RawSQL(
            "SELECT memadmin_holds_on(id, subject_id, labels) FROM sessions_app_sessionrecord"
            " WHERE id = ANY(%s::uuid[]) UNION"
            " SELECT memadmin_holds_on(NULL, subject, '{}') FROM unnest(%s::uuid[]) AS subject",
            [list(record_ids), list(subject_ids)],
        )
        return self.filter(number__in=numbers).order_by("number")

    def with_names(self) -> LegalHoldQuerySet:
        """Holds with everything that lists show. One query more."""
        return self.select_related(
            "owner", "placed_by", "approval__asked_by", "approval__decided_by", "subject"
        ).prefetch_related("subject__aliases")


def count_to_decide() -> int:
    """Number of requested releases for the sidebar, at most 1,001. One query."""
    from memadmin.retention.models import LegalHold

    return count_up_to(LegalHold.objects.to_decide())


def count_changes_to_decide() -> int:
    """Number of changes of policies that await a second person, for the sidebar, at most 1,001. One query."""
    from memadmin.retention.models import PolicyVersion

    return count_up_to(PolicyVersion.objects.awaiting())


class PolicyVersionQuerySet(models.QuerySet["PolicyVersion"]):
    def in_force(self) -> PolicyVersionQuerySet:
        """The version of each policy that counts now, by name; policies that ended have none. Times of the database."""
        started = self.filter(policy=OuterRef("policy"), starts_at__lte=Now(), closed_at__isnull=True)
        newest = started.order_by("-number").values("pk")[:1]
        return (
            self.filter(pk=Subquery(newest), is_end=False)
            .select_related("policy")
            .order_by("policy__name", "policy_id")
        )

    def open(self) -> PolicyVersionQuerySet:
        """Changes that can still be stopped: those that await a second person, and those in their grace period."""
        return self.filter(closed_at__isnull=True).filter(Q(starts_at__isnull=True) | Q(starts_at__gt=Now()))

    def awaiting(self) -> PolicyVersionQuerySet:
        """Changes that await a second person, the longest waiting first."""
        return self.filter(closed_at__isnull=True, starts_at__isnull=True).order_by("approval__asked_at", "pk")

    def with_names(self) -> PolicyVersionQuerySet:
        return self.select_related("policy", "approval__asked_by", "approval__decided_by", "closed_by")


class SweepResultQuerySet(models.QuerySet["SweepResult"]):
    def in_order(self) -> SweepResultQuerySet:
        """In the order of the work."""
        return self.order_by("position", "pk")

    def unfinished(self) -> SweepResultQuerySet:
        return self.exclude(state__in=["done", "skipped"]).order_by("position", "pk")
