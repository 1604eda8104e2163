"""Figures about sweeps: how far they are behind, what is still due, and whether that grows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.timezone import now

from memadmin.retention.models import SweepResult
from memadmin.retention.sweep.nights import next_night
from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.runs.models import Run

RECENT = 30
"""Runs that the figures look at."""

TIMES = 3
"""Runs in a row in which a backlog grew, from which that is a warning."""

SUCCEEDED = (Run.State.COMPLETE, Run.State.COMPLETE_WITH_EXCEPTIONS)


@dataclass(frozen=True, slots=True)
class GrowingBacklog:
    """A policy and a place at which more was left over after each of the last runs."""

    results: Sequence[SweepResult]
    """Results of these runs, oldest first: at least TIMES + 1."""

    @property
    def newest(self) -> SweepResult:
        return self.results[-1]

    @property
    def times(self) -> int:
        return len(self.results) - 1

    @property
    def sentence(self) -> str:
        counts = ", ".join(f"{result.backlog:,}" for result in self.results[-TIMES - 1 :])
        place = f" in {self.newest.place}" if self.newest.place else ""
        return (
            f"{self.newest.version.policy}{place}: the number of overdue rows grew in {self.times} runs in a row"
            f" ({counts})."
        )


@dataclass(frozen=True, slots=True)
class SweepMetrics:
    """Figures of the newest runs."""

    next_at: datetime
    last_success_at: datetime | None
    backlog: int
    """Rows that were due and stayed, after the newest run of each policy at each place."""
    behind_since: datetime | None
    """Since when the oldest of them is due."""
    rows_per_second: float | None
    """Speed of the newest run that took anything."""
    growing: Sequence[GrowingBacklog]

    @property
    def behind(self) -> timedelta | None:
        """Time by which the sweep is behind its policies; None if nothing is due."""
        return max(now() - self.behind_since, timedelta()) if self.behind_since else None

    def as_json(self) -> dict[str, Any]:
        return {
            "next_run": self.next_at.isoformat(),
            "last_success": self.last_success_at and self.last_success_at.isoformat(),
            "backlog_rows": self.backlog,
            "seconds_behind": round(self.behind.total_seconds()) if self.behind else 0,
            "rows_per_second": self.rows_per_second and round(self.rows_per_second, 1),
            "growing": [growth.sentence for growth in self.growing],
        }


def recent_runs(at_most: int = RECENT) -> list[Run]:
    """The newest runs, newest first. One query."""
    return list(Run.objects.filter(kind=RUN_KIND).order_by("-number")[:at_most])


def metrics_of(runs: Sequence[Run]) -> SweepMetrics:
    """Figures of these runs, newest first. One query."""
    by_place = results_by_place(runs)
    last = [results[-1] for results in by_place.values()]
    succeeded = [run.ended_at for run in runs if run.state in SUCCEEDED and run.ended_at]
    rates = (run.done / (run.worked_ms / 1000) for run in runs if run.done and run.worked_ms)
    return SweepMetrics(
        next_at=next_night(),
        last_success_at=max(succeeded, default=None),
        backlog=sum(result.backlog or 0 for result in last),
        behind_since=min((result.behind_since for result in last if result.behind_since), default=None),
        rows_per_second=next(rates, None),
        growing=[growth for results in by_place.values() if (growth := growth_of(results))],
    )


def results_by_place(runs: Iterable[Run]) -> dict[tuple[UUID, str], list[SweepResult]]:
    """Counted results by policy and place, oldest first; of policies that ended, too. One query."""
    numbers = [run.pk for run in runs]
    counted = SweepResult.objects.filter(run__in=numbers, backlog__isnull=False).select_related("version__policy")
    found: dict[tuple[UUID, str], list[SweepResult]] = {}
    for result in counted.order_by("run", "position", "pk"):
        found.setdefault((result.version.policy_id, result.place), []).append(result)
    return found


def growth_of(results: Sequence[SweepResult]) -> GrowingBacklog | None:
    """The results of the growth that still goes on at the end, if it is long enough."""
    begin = len(results) - 1
    while begin > 0 and (results[begin - 1].backlog or 0) < (results[begin].backlog or 0):
        begin -= 1
    return GrowingBacklog(results[begin:]) if len(results) - begin > TIMES else None
