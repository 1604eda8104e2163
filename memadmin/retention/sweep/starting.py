"""Start of a sweep: what the policies in force would take now, and whether that is as expected."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Sum

from memadmin.retention.models import PolicyVersion, SweepResult
from memadmin.retention.policies.rules import Action, Rule
from memadmin.retention.targets.base import target_named
from memadmin.retention.targets.due_rows import DueRows
from memadmin.runs.engine import Lease
from memadmin.runs.models import Run
from memadmin.runs.services import request_run

RUN_KIND = "retention"

SLACK = 100
"""Rows by which a run may exceed twice what was expected: a few more are no accident."""

STARTED = "started"
"""Key of the run's cursor: the results are counted."""


@transaction.atomic
def request_sweep(*, by: User | None = None, policy: str = "") -> Run:
    """Requests a sweep under all policies, or under one by its name; returns the unfinished one if there is one."""
    with_same = Run.objects.filter(kind=RUN_KIND, ended_at__isnull=True, parameters__policy=policy).order_by("number")
    return with_same.first() or request_run(RUN_KIND, by=by, parameters={"policy": policy})


def start(lease: Lease, due: DueRows) -> None:
    """Makes the results of a run, with what is due under each rule at each place. Safe to repeat."""
    if STARTED in lease.run.cursor:
        return
    wanted = lease.run.parameters.get("policy", "")
    for position, rule in enumerate(sweepable(due)):
        if wanted and rule.name != wanted:
            continue
        target = target_named(rule.target)
        for place in target.places(rule):
            # Counting takes time at large stores.
            lease.extend(COUNTING)
            count = target.count(due, rule, place)
            with lease.chunk():
                SweepResult.objects.get_or_create(
                    run=lease.run,
                    version_id=rule.version,
                    place=place,
                    defaults={
                        "position": position,
                        "previewed": count.rows,
                        "previewed_items": count.items,
                        "held": count.held,
                        "live": count.live,
                    },
                )
    with lease.chunk() as run:
        counted = SweepResult.objects.filter(run=run).aggregate(rows=Sum("previewed"), items=Sum("previewed_items"))
        run.total = (counted["rows"] or 0) + (counted["items"] or 0)
        run.cursor = {**run.cursor, STARTED: True}
        run.rows_per_second = run.rows_per_second or speed_for(run.total)


COUNTING = timedelta(minutes=10)
"""Time that the count at one place may take."""


def sweepable(due: DueRows) -> list[Rule]:
    """Rules that take something, the strongest first. Whole sessions before their items."""
    taking = [rule for rule in due.rules if rule.length and rule.action != Action.KEEP]
    return sorted(taking, key=lambda rule: (rule.target != "sessions", rule.order()))


def speed_for(rows: int) -> int | None:
    """Rows per second with which a run takes half of the night's hours; None for small runs, which need no limit."""
    if rows < SMALL_RUN:
        return None
    return max(SLOWEST, int(2 * rows / settings.RETENTION_WINDOW.total_seconds()))


SMALL_RUN = 10_000
SLOWEST = 100


def expected_rows(result: SweepResult) -> int | None:
    """Rows that this version was expected to take here: by the last run's forecast, or by the approved preview.

    None where nothing is known: then the run's own count is all there is. Two queries.
    """
    last = (
        SweepResult.objects.filter(version=result.version_id, place=result.place, forecast__isnull=False)
        .exclude(run=result.run_id)
        .order_by("-pk")
        .first()
    )
    if last is not None:
        return last.forecast
    approved = PolicyVersion.objects.values_list("preview", flat=True).get(pk=result.version_id)
    counts = {place["place"]: place["rows"] for place in approved.get("places", [])}
    return counts.get(result.place)


def is_too_much(rows: int, expected: int) -> bool:
    """Whether rows exceed twice what was expected, by more than a few."""
    return rows > 2 * expected + SLACK
