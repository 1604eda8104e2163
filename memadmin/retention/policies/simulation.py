"""The simulator: what a draft would take now, beside what the policy in force takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from memadmin.home.charts import Chart, Series
from memadmin.retention.models import LegalHold, PolicyVersion
from memadmin.retention.policies.figures import bytes_of_rows, bytes_of_sessions, item_figures
from memadmin.retention.policies.preview import (
    Bucket,
    PolicyPreview,
    histogram,
    preview,
    preview_change,
    samples,
    with_change,
)
from memadmin.retention.policies.rivals import Rival, rivals, then_deciding
from memadmin.retention.policies.rules import Rule
from memadmin.retention.targets.base import PlaceCount, target_named
from memadmin.retention.targets.due_rows import DueRows
from sessions_app.models import SessionRecord


@dataclass(frozen=True, slots=True)
class Sample:
    """A row that would go: our own id, the instant of its clock, and its page if it has one. No content."""

    id: str
    at: datetime
    url: str


@dataclass(frozen=True)
class Simulation:
    """Preview of a draft, beside the preview of the policy in force."""

    rule: Rule
    title: str
    counted: PolicyPreview
    current: PolicyPreview | None
    """Preview of the policy as it is; None for a new one, and for one that takes nothing."""
    holds: Sequence[LegalHold] = ()
    buckets: Sequence[Bucket] = ()
    samples: Sequence[Sample] = ()
    rivals: Sequence[Rival] = ()
    byte_count: int | None = None
    """Bytes that would go; None if they are unknown."""
    is_estimate: bool = False
    """Whether the bytes are known from statistics alone."""
    bytes_of: str = ""
    """Part of the data to which the bytes refer; empty if it is all."""
    is_partial: bool = False
    """Whether figures about items are those of the oldest sessions alone."""
    is_end: bool = False

    @property
    def unit(self) -> str:
        return target_named(self.rule.target).unit

    @property
    def aged_unit(self) -> str:
        """Noun of the rows in the histogram."""
        return "items" if self.rule.target == "items" else self.unit

    @property
    def current_unit(self) -> str:
        return target_named(self.current.rule.target).unit if self.current else self.unit

    @property
    def remarks(self) -> str:
        return target_named(self.rule.target).remarks

    @property
    def clock(self) -> str:
        return target_named(self.rule.target).clocks[self.rule.clock]

    @property
    def total(self) -> int:
        return self.counted.rows + self.counted.uncovered

    @property
    def has_items(self) -> bool:
        return self.counted.items is not None

    @property
    def places(self) -> Sequence[PlaceCount]:
        return self.counted.places

    @property
    def oldest(self) -> datetime | None:
        return min((place.oldest for place in self.places if place.oldest), default=None)

    @property
    def newest(self) -> datetime | None:
        return max((place.newest for place in self.places if place.newest), default=None)

    @property
    def chart(self) -> Chart:
        """Rows by age: kept, to be taken and held."""
        days = [str(bucket.days) for bucket in self.buckets]
        of_oldest = ", of the oldest sessions" if self.is_partial else ""
        what = "would go" if self.aged_unit == self.unit else "with such items"
        return Chart(
            "age-histogram",
            f"{self.aged_unit.capitalize()} by days since {self.clock}{of_oldest}",
            f"Histogram by age: {self.counted.rows:,} {self.unit} {what}, {self.counted.held:,} are held.",
            "From days",
            [*days[:-1], f"{days[-1]}+"],
            [
                Series("Kept", "s3", [each.kept for each in self.buckets]),
                Series("Would go", "s-red", [each.taken for each in self.buckets]),
                Series("Held", "s-purple", [each.held for each in self.buckets]),
            ],
            empty="There are no rows.",
        )


def simulate(draft: PolicyVersion, rules: Sequence[Rule]) -> Simulation:
    """The simulation of a version that is not in force, by the rules in force. Some queries for each store and rule."""
    rule = draft.rule()
    old = next((each for each in rules if each.policy == rule.policy), None)
    counted = preview_change(rule, rules, is_end=draft.is_end)
    simulation = Simulation(
        rule=rule,
        title=draft.policy.name,
        counted=counted,
        current=preview(old, rules) if old and old.length else None,
        rivals=then_deciding(rule, rules) if draft.is_end else rivals(rule, rules),
        is_end=draft.is_end,
    )
    if draft.is_end or not rule.length:
        return simulation
    after = with_change(rule, rules)
    if counted.held:
        simulation = replace(simulation, holds=holds_hit(rule, after))
    if rule.target == "items":
        # Its rows are sessions that can have such items; which of them do, only their items say.
        found = item_figures(counted, after)
        return replace(
            simulation,
            buckets=found.buckets,
            samples=[Sample(str(record.pk), at, record.get_absolute_url()) for at, record in found.samples],
            byte_count=found.byte_count,
            bytes_of="" if found.is_complete else "in the oldest sessions",
            is_partial=not found.is_complete,
        )
    is_of_sessions = rule.target == "sessions"
    byte_count, is_all = bytes_of_sessions(counted) if is_of_sessions else (bytes_of_rows(rule, after), True)
    return replace(
        simulation,
        byte_count=byte_count,
        is_estimate=is_of_sessions,
        bytes_of="" if is_all else "in this database",
        buckets=histogram(rule, after),
        samples=[sample_of(row) for row in samples(rule, after)],
    )


def sample_of(row: Any) -> Sample:
    has_page = hasattr(row, "get_absolute_url")
    return Sample(str(row.pk), row.clock_at, row.get_absolute_url() if has_page else "")


MOST_HELD = 200


def holds_hit(rule: Rule, rules: Sequence[Rule]) -> list[LegalHold]:
    """Holds on the first MOST_HELD rows that would go without them, by number. Two queries."""
    rows = list(DueRows(rules).held(rule).order_by("pk")[:MOST_HELD])
    records = [row.pk if isinstance(row, SessionRecord) else getattr(row, "record_id", None) for row in rows]
    subjects = [getattr(row, "subject_id", None) for row in rows]
    return list(LegalHold.objects.covering(list(filter(None, records)), list(filter(None, subjects))))
