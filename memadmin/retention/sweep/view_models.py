"""View models of sweeps: rows of the ledger, results of one run, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Q, Sum
from django.http import QueryDict
from django.utils.timezone import now

from memadmin.counting import counted
from memadmin.retention.models import SweepResult, SweptTable
from memadmin.retention.sweep.filters import LedgerFilter
from memadmin.retention.sweep.metrics import recent_runs
from memadmin.retention.sweep.nights import next_night
from memadmin.retention.sweep.tables import TableSize, sizes_of, swept_tables
from memadmin.retention.targets.base import KeptReason, RetentionTarget, target_named
from memadmin.runs.models import Run
from memadmin.runs.view_models import RunView, view_of

State = SweepResult.State

LOOKS = {
    State.TO_DO: ("secondary", "clock"),
    State.RUNNING: ("blue", "loader-2"),
    State.DONE: ("green", "check"),
    State.SKIPPED: ("orange", "alert-triangle"),
}
"""Colour and symbol of each state."""

FEWEST_SECONDS = 1.0
"""Minimum of time before a speed is shown."""

NEWEST = 5


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One run with its counts over all policies and places."""

    item: RunView
    previewed: int | None = None
    previewed_items: int | None = None
    taken: int = 0
    items: int = 0
    held: int = 0
    live: int = 0
    policies: int = 0
    skipped: Sequence[str] = ()
    """Names of the stores that it skipped."""

    @property
    def run(self) -> Run:
        return self.item.run

    @property
    def remark(self) -> str:
        """Policies of the run, and stores that it skipped."""
        about = self.item.description
        if about == "All policies" and self.policies:
            about = counted(self.policies, "policies")
        skipped = f"{', '.join(self.skipped)} skipped" if self.skipped else ""
        return " · ".join(filter(None, (about, skipped)))


def ledger_rows(runs: Sequence[Run], viewer: User) -> list[LedgerRow]:
    """One row for each run. One query."""
    counted = (
        SweepResult.objects.filter(run__in=[run.pk for run in runs])
        .order_by()
        .values("run")
        .annotate(
            previewed=Sum("previewed"),
            previewed_items=Sum("previewed_items"),
            taken=Sum("taken"),
            items=Sum("items"),
            held=Sum("held"),
            live=Sum("live"),
            policies=Count("version", distinct=True),
            skipped=ArrayAgg("place", filter=Q(state=State.SKIPPED) & ~Q(place=""), distinct=True, default=[]),
        )
    )
    counts: dict[int, dict[str, Any]] = {
        row["run"]: {name: value for name, value in row.items() if name != "run"} for row in counted
    }
    return [LedgerRow(view_of(run, viewer), **counts.get(run.pk, {})) for run in runs]


def newest_runs(viewer: User) -> dict[str, object]:
    """Context of `retention/_runs.html`: the newest runs, and the time of the next one. Two queries."""
    return {
        "rows": ledger_rows(recent_runs(NEWEST), viewer),
        "next_at": next_night(),
        "filters": LedgerFilter(QueryDict()),
    }


@dataclass(frozen=True, slots=True)
class ResultView:
    """Result of one run under one version of a policy at one place."""

    result: SweepResult
    target: RetentionTarget
    is_moving: bool
    """Whether its run is running."""

    @property
    def look(self) -> tuple[str, str]:
        """Colour and symbol."""
        return LOOKS[State.TO_DO] if self.is_unfinished else LOOKS[State(self.result.state)]

    @property
    def colour(self) -> str:
        return self.look[0]

    @property
    def symbol(self) -> str:
        return self.look[1]

    @property
    def state(self) -> str:
        return "not finished" if self.is_unfinished else State(self.result.state).label

    @property
    def is_unfinished(self) -> bool:
        """True if the run began this work and is not running now."""
        return self.result.state == State.RUNNING and not self.is_moving

    @property
    def left(self) -> list[tuple[str, int]]:
        """Reasons for which rows stay for now, with their numbers."""
        return [(KeptReason.SENTENCES.get(code, code), count) for code, count in sorted(self.result.left.items())]

    @property
    def tables(self) -> list[tuple[str, int]]:
        return sorted(self.result.tables.items())

    @property
    def took(self) -> timedelta | None:
        """Time until its end, or until now."""
        begun = self.result.started_at
        return (self.result.ended_at or now()) - begun if begun else None

    @property
    def rate(self) -> float | None:
        """Rows and items per second, pauses included."""
        seconds = self.took.total_seconds() if self.took else 0.0
        done = self.result.taken + self.result.items
        return done / seconds if done and seconds >= FEWEST_SECONDS else None

    @property
    def behind(self) -> timedelta | None:
        """Time since the oldest row that is still there was due, when the run ended."""
        if not self.result.behind_since:
            return None
        return max((self.result.ended_at or now()) - self.result.behind_since, timedelta())


def result_views(run: Run) -> list[ResultView]:
    """Results of a run, in the order of the work. One query."""
    results = SweepResult.objects.filter(run=run).in_order().select_related("version__policy")
    is_moving = run.state == Run.State.RUNNING
    return [ResultView(result, target_named(result.version.target), is_moving) for result in results]


@dataclass(frozen=True, slots=True)
class TableView:
    """A table from which sweeps delete, with the newest deletions from it."""

    size: TableSize
    store: str
    """Name of the store that it belongs to; empty for our own tables."""
    swept: list[SweptTable] = field(default_factory=list)


SHOWN_OF_A_TABLE = 3


def table_views() -> list[TableView]:
    """The tables, the agents' first. Four queries, none of which reads a table."""
    stores = swept_tables()
    newest: dict[str, list[SweptTable]] = {}
    runs = [run.pk for run in recent_runs()]
    for swept in SweptTable.objects.filter(run__in=runs).select_related("run").order_by("-pk"):
        newest.setdefault(swept.name, []).append(swept)
    return [
        TableView(size, stores[size.name], newest.get(size.name, [])[:SHOWN_OF_A_TABLE]) for size in sizes_of(stores)
    ]
