"""Start of a sweep: what the policies in force would take now, and whether that is as expected."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Count, Min, OuterRef, Subquery, Sum
from django.db.models.functions import Now

from memadmin.retention.models import PolicyVersion, SweepResult, UnfinishedExpiry
from memadmin.retention.policies.rules import Action, Rule
from memadmin.retention.targets.base import KeptReason, target_named
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.runs.engine import Lease, stoppable
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app.models import SessionRecord

RUN_KIND = "retention"

SLACK = 100
"""Rows by which a run may exceed twice what was expected: a few more are no accident."""

STARTED = "started"
"""Key of the run's cursor: the results are counted."""

COUNTED = "counted"
"""Key of the run's cursor: versions and places that are counted already."""


@transaction.atomic
def request_sweep(*, by: User | None = None, policy: str = "") -> Run:
    """Requests a sweep under all policies, or under one by its name; returns the unfinished one if there is one."""
    with_same = Run.objects.filter(kind=RUN_KIND, ended_at__isnull=True, parameters__policy=policy).order_by("number")
    return with_same.first() or request_run(RUN_KIND, by=by, parameters={"policy": policy})


def start(lease: Lease) -> None:
    """Makes the results of a run, with what is due under each rule at each place. Safe to repeat."""
    if STARTED in lease.run.cursor:
        return
    if INSTANT not in lease.run.parameters:
        with lease.chunk() as run:
            run.parameters = {**run.parameters, INSTANT: database_time().isoformat()}
            Run.objects.filter(pk=run.pk).update(parameters=run.parameters)
            add_begun(run)
    due = DueRows.now(instant_of(lease))
    wanted = lease.run.parameters.get("policy", "")
    for position, rule in enumerate(sweepable(due), start=1):
        for place in target_named(rule.target).places(rule) if wanted in ("", rule.name) else ():
            if f"{rule.version} {place}" not in lease.run.cursor.get(COUNTED, []):
                count_at(lease, due, rule, place, position)
                lease.checkpoint()
        for place in target_named(rule.target).detached_places(rule) if wanted in ("", rule.name) else ():
            note_detached(lease, due, rule, place, position)
    with lease.chunk() as run:
        sums = SweepResult.objects.filter(run=run).aggregate(rows=Sum("previewed"), items=Sum("previewed_items"))
        run.total = (sums["rows"] or 0) + (sums["items"] or 0)
        run.cursor = {STARTED: True}
        run.rows_per_second = run.rows_per_second or speed_for(run.total)


def count_at(lease: Lease, due: DueRows, rule: Rule, place: str, position: int) -> None:
    """Makes one result, with what is due now. Counting takes time at large stores."""
    lease.extend(COUNTING)
    with stoppable():
        count = target_named(rule.target).count(due, rule, place)
    counted = {
        "previewed": count.rows if count.is_complete else None,
        "previewed_items": count.items,
        "held": count.held,
        "live": count.live,
    }
    with lease.chunk() as run:
        # It may be there for the sessions that an earlier run has begun.
        SweepResult.objects.update_or_create(
            run=run,
            version_id=rule.version,
            place=place,
            defaults=counted,
            create_defaults={"position": position, **counted},
        )
        run.cursor = {**run.cursor, COUNTED: [*run.cursor.get(COUNTED, []), f"{rule.version} {place}"]}


def note_detached(lease: Lease, due: DueRows, rule: Rule, place: str, position: int) -> None:
    """Makes a result that says what is due in a store that is no longer attached, if anything is."""
    target = target_named(rule.target)
    with stoppable():
        rows = target.at_place(due.due(rule), place).annotate(clock_at=target.clock(rule.clock))
        found = rows.aggregate(count=Count("pk"), oldest=Min("clock_at"))
    if not found["count"]:
        return
    is_exact = rule.target == "sessions" and rule.length is not None
    result = {
        "position": position,
        "state": SweepResult.State.SKIPPED,
        "reason": f"{place}: {KeptReason.SENTENCES[KeptReason.DETACHED]}",
        "left": {KeptReason.DETACHED: found["count"]},
        # Of sessions that go on it is not known whether any item is due.
        "backlog": found["count"] if is_exact else 0,
        "behind_since": rule.length.after(found["oldest"]) if is_exact and rule.length else None,
        "forecast": found["count"],
        "ended_at": Now(),
    }
    with lease.chunk() as run:
        _, is_new = SweepResult.objects.get_or_create(run=run, version_id=rule.version, place=place, defaults=result)
        if is_new:
            run.add_exception(KeptReason.DETACHED, place, found["count"])


def instant_of(lease: Lease) -> datetime:
    """The instant at which rows must be due for this run: that of its beginning, by the database.

    A clock that steps ahead later makes it take no more. One that steps back makes it take less: see `take_chunk`.
    """
    return datetime.fromisoformat(lease.run.parameters[INSTANT])


INSTANT = "at"
"""Name of the run's parameter that keeps the instant."""


def add_begun(run: Run) -> None:
    """Adds a result for each version and store with sessions that an earlier run has begun.

    They are finished first, whatever came of that run and of the policy: their items are gone in part, and agents
    cannot write to them.
    """
    stores = SessionRecord.objects.filter(pk=OuterRef("record_id")).values("store__name")
    begun = UnfinishedExpiry.objects.annotate(place=Subquery(stores)).exclude(place=None)
    for version, place in begun.values_list("version_id", "place").distinct():
        SweepResult.objects.create(run=run, version_id=version, place=place)


COUNTING = timedelta(minutes=10)
"""Time that the count at one place may take."""


def sweepable(due: DueRows) -> list[Rule]:
    """Rules that take something, the strongest first: whole sessions before their items, and deletions before other
    actions, so that none takes in the same run what another has changed.
    """
    taking = [rule for rule in due.rules if rule.length and rule.action != Action.KEEP]
    return sorted(taking, key=lambda rule: (rule.target != "sessions", rule.action != Action.DELETE, rule.order()))


def speed_for(rows: int) -> int | None:
    """Rows per second with which a run takes half of the night's hours; None for small runs, which need no limit."""
    if rows < SMALL_RUN:
        return None
    return max(SLOWEST, int(2 * rows / settings.RETENTION_WINDOW.total_seconds()))


SMALL_RUN = 10_000
SLOWEST = 100


def expected_rows(result: SweepResult) -> int | None:
    """Rows that this version was expected to take here: by the last run's forecast, or by the approved preview.

    None where nothing is known: then the run's own count is all there is. A place that an approved preview does not
    have was not expected at all. Three queries at most.
    """
    earlier = SweepResult.objects.filter(place=result.place, backlog__isnull=False).exclude(run=result.run_id)
    if last := earlier.filter(version=result.version_id).order_by("-pk").first():
        # Without a forecast not everything could be counted.
        return last.taken if last.forecast is None else last.forecast
    approved = PolicyVersion.objects.values_list("preview", flat=True).get(pk=result.version_id)
    if "places" not in approved:
        # It came into force at once, for it keeps more: no more can be due than under the version before.
        last = earlier.filter(version__policy=result.version.policy_id).order_by("-pk").first()
        return last.forecast if last else None
    counts: dict[str, int] = {place["place"]: place["rows"] for place in approved["places"]}
    return counts.get(result.place, 0)


def is_too_much(rows: int, expected: int) -> bool:
    """Whether rows exceed twice what was expected, by more than a few."""
    return rows > 2 * expected + SLACK
