"""Previews: what the policies, or a change of one, would take at an instant. The queries are those of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count
from django.db.models.functions import Now, Trunc

from memadmin.retention.policies.rivals import may_meet
from memadmin.retention.policies.rules import Rule
from memadmin.retention.targets.base import PlaceCount, target_named
from memadmin.retention.targets.due_rows import DueRows

SAMPLES = 10
BUCKETS = 13
DAYS_A_BUCKET = 30


@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """Rows that one rule would take, by place."""

    rule: Rule
    places: Sequence[PlaceCount]
    uncovered: int = 0
    """Rows that other policies would take besides, because of the change; see `uncovered_by`."""

    @property
    def rows(self) -> int:
        """Number of rows that the rule itself would take."""
        return sum(place.rows for place in self.places)

    @property
    def items(self) -> int | None:
        counted = [place.items for place in self.places if place.items is not None]
        return sum(counted) if counted else None

    @property
    def held(self) -> int:
        return sum(place.held for place in self.places)

    @property
    def live(self) -> int:
        return sum(place.live for place in self.places)

    @property
    def subjects(self) -> int:
        """Number of subjects; one with sessions at two places counts twice."""
        return sum(place.subjects for place in self.places)

    @property
    def is_complete(self) -> bool:
        """Whether every place was counted."""
        return not any(place.problem for place in self.places)

    def as_json(self) -> dict[str, Any]:
        """For a version's row: counts by place, and no ids. Its `rows` are all that would go because of the change."""
        places = [asdict(place) for place in self.places]
        for place in places:
            for name in ("oldest", "newest"):
                place[name] = place[name] and place[name].isoformat()
        counts = {"rows": self.rows + self.uncovered, "uncovered": self.uncovered, "items": self.items}
        return {**counts, "held": self.held, "live": self.live, "places": places}


def preview(rule: Rule, rules: Sequence[Rule], *, at: datetime | None = None) -> PolicyPreview:
    """Counts what `rule` would take among these rules, at an instant or now. Some queries for each place.

    Never raises for a store that does not respond: its place has the `problem`.
    """
    due = DueRows(rules, at)
    target = target_named(rule.target)
    return PolicyPreview(rule, [target.count(due, rule, place) for place in target.places(rule)])


def preview_change(rule: Rule, rules: Sequence[Rule], *, is_end: bool = False) -> PolicyPreview:
    """Counts what would go under a rule that is not in force, with what other policies would take besides.

    Of a policy that ends that is all.
    """
    after = with_change(rule, rules, is_end=is_end)
    counted = PolicyPreview(rule, ()) if is_end else preview(rule, after)
    return replace(counted, uncovered=uncovered_by(rule, rules, after))


def with_change(rule: Rule, rules: Iterable[Rule], *, is_end: bool = False) -> list[Rule]:
    """The rules as they would be with this one in place of its policy's present one, or without it."""
    others = [other for other in rules if other.policy != rule.policy]
    return others if is_end else [*others, rule]


def uncovered_by(rule: Rule, before: Sequence[Rule], after: Sequence[Rule], *, at: datetime | None = None) -> int:
    """Number of rows that policies other than the rule's would take with the rules `after`, more than with `before`.

    A policy that ends, narrows its scope or drops its legal minimum uncovers data for them. Two queries for
    each of their places, and none for a policy that cannot be about the same rows.
    """
    now, then, target = DueRows(before, at), DueRows(after, at), target_named(rule.target)
    changed = [rule, *(each for each in before if each.policy == rule.policy)]
    others = [
        other
        for other in after
        if other.target == rule.target
        and other.policy != rule.policy
        and other.length
        and any(may_meet(each, other) for each in changed)
    ]
    return sum(
        max(target.at_place(then.due(other), place).count() - target.at_place(now.due(other), place).count(), 0)
        for other in others
        for place in target.places(other)
    )


def samples(rule: Rule, rules: Sequence[Rule], *, at: datetime | None = None) -> list[Any]:
    """The oldest rows that would go, at most SAMPLES. One query; the callers show no content."""
    rows = DueRows(rules, at).due(rule).annotate(clock_at=target_named(rule.target).clock(rule.clock))
    return list(rows.order_by("clock_at", "pk")[:SAMPLES])


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows of an age, in days; the last bucket has everything older, too."""

    days: int
    kept: int
    taken: int
    held: int


def histogram(rule: Rule, rules: Sequence[Rule], *, at: datetime | None = None) -> list[Bucket]:
    """Rows that the rule is about by their age, in buckets of 30 days: kept, taken and held.

    Two queries: one for whether there is any hold, and one that reads the rows once.
    """
    target = target_named(rule.target)
    counts = (
        target.rows()
        .filter(target.scope_q(rule))
        .annotate(age=Trunc(Now(), "day") - Trunc(target.clock(rule.clock), "day"))
        .annotate(outcome=DueRows(rules, at).outcome(rule))
        .order_by()
        .values_list("age", "outcome")
        .annotate(count=Count("pk"))
    )
    found: Counter[tuple[int, str]] = Counter()
    for age, outcome, count in counts:
        found[min(max(age, timedelta()) // timedelta(days=DAYS_A_BUCKET), BUCKETS - 1), outcome] += count
    return [
        Bucket(number * DAYS_A_BUCKET, *(found[number, outcome] for outcome in ("kept", "taken", "held")))
        for number in range(BUCKETS)
    ]
