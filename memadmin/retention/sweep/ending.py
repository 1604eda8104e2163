"""End of a sweep: what is still due, what will be due by the next run, and VACUUM of the tables that lost much."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Min
from django.utils.timezone import now

from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Rule
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from memadmin.runs.engine import Lease

UNTIL_NEXT = timedelta(days=1, hours=6)
"""Time for which the forecast counts: until the next night's run has begun."""


def finish_result(lease: Lease, result: SweepResult) -> None:
    """Notes the backlog and the forecast of one result."""
    rules = DueRows.now().rules
    rule = next((each for each in rules if each.version == result.version_id), None)
    backlog, behind_since, forecast = 0, None, None
    if rule is not None:
        backlog, behind_since = still_due(DueRows(rules), rule, result.place)
        later = DueRows(rules, now() + UNTIL_NEXT)
        target = target_named(rule.target)
        forecast = target.at_place(later.due(rule), result.place).count()
    with lease.chunk():
        SweepResult.objects.filter(pk=result.pk).update(backlog=backlog, behind_since=behind_since, forecast=forecast)


def still_due(due: DueRows, rule: Rule, place: str) -> tuple[int, object]:
    """Number of rows that are due and not held, and since when the oldest is due."""
    target = target_named(rule.target)
    rows = target.at_place(due.due(rule), place)
    oldest = rows.annotate(clock_at=target.clock(rule.clock)).aggregate(oldest=Min("clock_at"))["oldest"]
    count = rows.count()
    return count, rule.length.after(oldest) if count and oldest and rule.length else None


def vacuum_after(lease: Lease) -> None:
    """Vacuums the tables that lost many rows; see `vacuum`."""
