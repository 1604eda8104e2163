"""End of a sweep: what is still due, what will be due by the next run, and VACUUM of the tables that lost much."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Sum

from memadmin.retention.models import SweepResult
from memadmin.retention.sweep.starting import COUNTING
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.runs.engine import Lease

UNTIL_NEXT = timedelta(days=1, hours=6)
"""Time for which the forecast counts: until the next night's run has begun."""


def finish_result(lease: Lease, result: SweepResult) -> None:
    """Notes what holds and agents kept, the backlog and the forecast of one result."""
    lease.extend(COUNTING)
    at = database_time()
    due = DueRows.now(at)
    rule = due.rule_of(result.version_id)
    found: dict[str, object] = {"backlog": 0}
    if rule is not None:
        target = target_named(rule.target)
        backlog, oldest = target.still_due(due, rule, result.place)
        # A number that is not known is not a backlog: it would be counted again and again.
        found = {
            "backlog": backlog or 0,
            "behind_since": rule.length.after(oldest) if backlog and oldest and rule.length else None,
            "forecast": target.still_due(DueRows(due.rules, at + UNTIL_NEXT), rule, result.place)[0],
            "held": target.at_place(due.held(rule), result.place).count(),
            "live": target.at_place(due.live(rule), result.place).count(),
        }
    with lease.chunk() as run:
        SweepResult.objects.filter(pk=result.pk).update(**found)
        kept = SweepResult.objects.filter(run=run).aggregate(held=Sum("held"), live=Sum("live"))
        run.counters = {**run.counters, **{name: count or 0 for name, count in kept.items()}}


def vacuum_after(lease: Lease) -> None:
    """Vacuums the tables that lost many rows; see `vacuum`."""
