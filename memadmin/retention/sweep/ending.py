"""End of a sweep: what is still due, what will be due by the next run, and VACUUM of the tables that lost much."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Sum
from django.utils.timezone import now

from memadmin.retention.models import SweepResult, SweptTable
from memadmin.retention.sweep.starting import COUNTING
from memadmin.retention.sweep.tables import total_size
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.retention.vacuum import TIMEOUT, vacuum
from memadmin.runs.engine import Lease, stoppable
from memadmin.runs.models import Run

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
        with stoppable():
            still = target.count_rows(due, rule, result.place)
            later = target.count_rows(DueRows(due.rules, at + UNTIL_NEXT), rule, result.place)
        # A number that is not known is not a backlog: it would be counted again and again.
        backlog = still.rows if still.is_complete else 0
        found = {
            "backlog": backlog,
            "behind_since": rule.length.after(still.oldest) if backlog and still.oldest and rule.length else None,
            "forecast": later.rows if later.is_complete else None,
            "held": still.held,
            "live": still.live,
        }
    with lease.chunk() as run:
        SweepResult.objects.filter(pk=result.pk).update(**found)
        kept = SweepResult.objects.filter(run=run).aggregate(held=Sum("held"), live=Sum("live"))
        run.counters = {**run.counters, **{name: count or 0 for name, count in kept.items()}}


MANY_ROWS = 10_000
"""Rows that a run took from a table from which it vacuums it; autovacuum comes to the others soon enough."""

NOT_VACUUMED = "not_vacuumed"
"""Code of the run's exception, a hint."""


def vacuum_after(lease: Lease) -> None:
    """Vacuums and analyses the tables that lost many rows, each once, and notes their sizes before and after.

    Never VACUUM FULL, which keeps agents out. Tables that the role may not vacuum are named.
    """
    known = set(SweptTable.objects.filter(run=lease.run).values_list("name", flat=True))
    for table, rows in sorted(rows_by_table(lease.run).items()):
        if rows < MANY_ROWS or table in known:
            continue
        lease.extend(TIMEOUT)
        swept = SweptTable(run=lease.run, name=table, rows=rows, size_before=total_size(table))
        with stoppable():
            is_vacuumed = vacuum(table, analyze=True)
        if is_vacuumed:
            swept.size_after, swept.vacuumed_at = total_size(table), now()
        with lease.chunk() as run:
            swept.save()
            if swept.vacuumed_at is None:
                run.add_exception(NOT_VACUUMED, table)
        lease.checkpoint()


def rows_by_table(run: Run) -> dict[str, int]:
    """Rows that a run deleted or changed, by table. One query."""
    found: dict[str, int] = {}
    for tables in SweepResult.objects.filter(run=run).values_list("tables", flat=True):
        for table, rows in tables.items():
            found[table] = found.get(table, 0) + rows
    return found
