"""Review health: decisions by reviewer, waiting times, and agreement of second reviewers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Aggregate, Avg, Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from memories_app.models import Review
from memories_app.review.claiming import name_of
from memories_app.review.queue import age

LOOKED_BACK = timedelta(days=7)

MOST_REVIEWERS = 50


class Median(Aggregate):
    """Median of an expression; None without values."""

    name = "Median"
    template = "percentile_cont(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"


@dataclass(frozen=True, slots=True)
class Pace:
    """Decisions of one reviewer in a week. `agreement` is None without later decisions by others."""

    name: str
    decided: int
    rejected: int
    waited: str
    seconded: int
    agreement: int | None


def paces() -> list[Pace]:
    """The busiest first. Two queries, over the decisions of a week."""
    lately = Review.objects.filter(reviewer__isnull=False, undone_at=None, decided_at__gt=Now() - LOOKED_BACK)
    after = Review.objects.filter(
        memory=OuterRef("memory"), undone_at=None, reviewer__isnull=False, decided_at__gt=OuterRef("decided_at")
    ).exclude(reviewer=OuterRef("reviewer"))
    first = Q(decision=Review.Decision.APPROVE)
    counted = (
        lately.annotate(
            is_agreed=Exists(after.filter(decision=Review.Decision.APPROVE)),
            is_refused=Exists(after.filter(decision=Review.Decision.REJECT)),
        )
        .values("reviewer")
        .annotate(
            decided=Count("pk"),
            rejected=Count("pk", filter=Q(decision=Review.Decision.REJECT)),
            mean_wait=Avg("waited"),
            agreed=Count("pk", filter=first & Q(is_agreed=True)),
            refused=Count("pk", filter=first & Q(is_refused=True)),
        )
        .order_by("-decided", "reviewer")[:MOST_REVIEWERS]
    )
    rows = list(counted)
    people = User.objects.in_bulk([row["reviewer"] for row in rows])
    return [
        Pace(
            name_of(people.get(row["reviewer"])),
            row["decided"],
            row["rejected"],
            age(row["mean_wait"] or timedelta()),
            seconded := row["agreed"] + row["refused"],
            round(100 * row["agreed"] / seconded) if seconded else None,
        )
        for row in rows
    ]
