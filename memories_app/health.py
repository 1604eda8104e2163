"""How the review queue is kept: who decided how much, how long it waited, and how often a second person agreed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Avg, Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from memadmin.counting import COUNT_CAP
from memories_app.models import Review
from memories_app.queue import age
from memories_app.services.claiming import name_of

LOOKED_BACK = timedelta(days=7)

MOST_REVIEWERS = 50


# In the order of Week. The overview asks it, and Django takes longer to write it down than PostgreSQL to answer it.
COUNT_WEEK = """
SELECT (SELECT count(*) FROM (
           SELECT FROM memories_app_memory WHERE proposed_at > statement_timestamp() - %(length)s LIMIT %(most)s
       ) AS lately),
       count(*) FILTER (WHERE decision = 'approve' AND rule_id IS NULL),
       count(*) FILTER (WHERE decision = 'approve' AND rule_id IS NOT NULL),
       count(*) FILTER (WHERE is_sample AND agreed IS NOT NULL),
       count(*) FILTER (WHERE is_sample AND agreed),
       count(*) FILTER (WHERE decision = 'reject'),
       percentile_cont(0.5) WITHIN GROUP (ORDER BY waited) FILTER (WHERE rule_id IS NULL)
FROM memories_app_review WHERE undone_at IS NULL AND decided_at > statement_timestamp() - %(length)s
"""


@dataclass(frozen=True, slots=True)
class Week:
    """What became of memories in a week. `sampled` of what rules approved were looked at by a person."""

    proposed: int
    by_people: int
    by_rule: int
    sampled: int
    agreed: int
    rejected: int
    waited: str


def this_week() -> Week:
    """One query, over the decisions of a week; proposals are counted up to a cap."""
    with connection.cursor() as cursor:
        given: dict[str, Any] = {"length": LOOKED_BACK, "most": COUNT_CAP + 1}
        cursor.execute(COUNT_WEEK, given)
        proposed, by_people, by_rule, sampled, agreed, rejected, median = cursor.fetchone()
    waited = age(median) if median is not None else ""
    return Week(proposed, by_people, by_rule, sampled, agreed, rejected, waited)


@dataclass(frozen=True, slots=True)
class Pace:
    """What one reviewer did in a week. `agreement` is None where no second person decided after them."""

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
