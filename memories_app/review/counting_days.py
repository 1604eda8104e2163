"""Proposals, decisions, waiting times and recalls per day, for the charts of the home page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Count, Q, QuerySet

from memadmin.home.day_counts import counts_days_of
from memories_app.models import Memory, Recall, Review
from memories_app.review.health import Median

PROPOSALS, DECISIONS, WAITS, RECALLS = "proposals", "decisions", "review waits", "recalls"
"""Names of the series."""

APPROVED, BY_RULE, REJECTED, OTHER = "approved", "by_rule", "rejected", "other"
"""Parts of the decisions: approved by people and by rules, rejected, and merged or retired."""


@counts_days_of(PROPOSALS)
def proposals_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """Proposals of a day. One query: a range of an index."""
    return {"": Memory.objects.filter(proposed_at__gte=begin, proposed_at__lt=end).count()}


@counts_days_of(DECISIONS)
def decisions_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """Decisions of a day that were not undone, by what was decided. One query over the decisions of the day."""
    is_approval, is_rejection = Q(decision=Review.Decision.APPROVE), Q(decision=Review.Decision.REJECT)
    counted: Mapping[str, int] = decided(begin, end).aggregate(
        **{
            APPROVED: Count("pk", filter=is_approval & Q(rule__isnull=True)),
            BY_RULE: Count("pk", filter=is_approval & Q(rule__isnull=False)),
            REJECTED: Count("pk", filter=is_rejection),
            OTHER: Count("pk", filter=~is_approval & ~is_rejection),
        }
    )
    return counted


@counts_days_of(WAITS)
def wait_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """The median time in minutes that the proposals decided by people on a day had waited; nothing without any. One
    query over the decisions of the day.
    """
    by_people = decided(begin, end).filter(rule__isnull=True, waited__isnull=False)
    median = by_people.aggregate(median=Median("waited"))["median"]
    return {} if median is None else {"": round(median.total_seconds() / 60)}


@counts_days_of(RECALLS)
def recalls_of_day(begin: datetime, end: datetime) -> Mapping[str, int]:
    """Recalls of a day, each of one run. One query: a range of an index."""
    return {"": Recall.objects.filter(recalled_at__gte=begin, recalled_at__lt=end).count()}


def decided(begin: datetime, end: datetime) -> QuerySet[Review]:
    return Review.objects.filter(undone_at=None, decided_at__gte=begin, decided_at__lt=end)
