"""Retention on the home page: runs, holds and changes of policies that need a person, and rows per night."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Sum
from django.urls import reverse
from django.utils.timezone import now

from memadmin.home.charts import Chart, Series, day_labels, long_day_labels
from memadmin.home.parts import HomeParts, Waiting, on_home, time_since, yesterday
from memadmin.retention.models import LegalHold, SweepResult
from memadmin.retention.sweep.alerts import IS_NEWS, PARKED
from memadmin.retention.sweep.metrics import RECENT, GrowingBacklog, metrics_of, recent_runs
from memadmin.retention.sweep.silence import silence
from memadmin.runs.models import Run
from memadmin.web.templatetags.memadmin import day_and_minute, zone

MOST_SHOWN = 3
"""Entries of one kind; the list has all."""

REVIEW_SOON = timedelta(days=7)
"""A hold is shown from this time before its review date."""


@on_home("Retention", "retention.view_policy", roles=("compliance",))
def retention_runs(user: User) -> HomeParts:
    """Runs that need a person, and rows per run. Six queries at most, over the newest runs."""
    runs = recent_runs(RECENT)
    metrics = metrics_of(runs)
    sums = SweepResult.objects.filter(run__in=[run.pk for run in runs]).order_by().values_list("run")
    taken_and_held = {
        run: (taken or 0, held or 0) for run, taken, held in sums.annotate(taken=Sum("taken"), held=Sum("held"))
    }
    nights = [run for run in reversed(runs) if run.started_at]
    taken = [taken_and_held.get(run.pk, (0, 0))[0] for run in nights]
    held = [taken_and_held.get(run.pk, (0, 0))[1] for run in nights]
    recent = [place for place, run in enumerate(nights) if run.started_at and run.started_at >= yesterday()]
    days = [run.started_at.date() for run in nights if run.started_at]
    return HomeParts(
        waiting=[*parked_runs(runs), *long_silence(), *growing(metrics.growing)],
        changes=[
            f"{sum(taken[place] for place in recent):,} rows deleted by retention",
            f"{sum(held[place] for place in recent):,} kept by holds",
        ]
        if recent
        else [],
        charts=[
            Chart(
                "retention-per-night",
                "Retention per run",
                f"Rows of the last {len(nights)} retention runs: {sum(taken):,} deleted, {sum(held):,} kept by holds.",
                "Run",
                day_labels(days),
                [Series("Deleted", "s1", taken), Series("Kept by holds", "s-purple", held)],
                note=f"{metrics.backlog:,} overdue, next run {day_and_minute(metrics.next_at)} {zone(metrics.next_at)}",
                row_labels=[f"{run}, {label}" for run, label in zip(nights, long_day_labels(days), strict=True)],
                empty="No retention run has deleted anything yet.",
            )
        ],
    )


def parked_runs(runs: list[Run]) -> list[Waiting]:
    """Runs that stopped, failed lately, or ended incomplete last."""
    entries = []
    ended = next((run for run in runs if run.is_finished), None)
    for run in runs:
        address = reverse("sweeps:run", args=[run.number])
        at = time_since(run.ended_at or run.chunk_at or run.requested_at)
        if run.state in PARKED and (run.ended_at is None or run.ended_at > now() - IS_NEWS):
            title = f"Retention run {run} {'stopped' if run.state == Run.State.STOPPED else 'failed'}"
            entries.append(Waiting(title, address, "View run", "alert-octagon", run.reason, at, "red"))
        elif run is ended and run.state == Run.State.COMPLETE_WITH_EXCEPTIONS:
            facts = "It could not take everything that was due."
            title = f"Retention run {run} is incomplete"
            entries.append(Waiting(title, address, "View run", "alert-triangle", facts, at, "orange"))
    return entries[:MOST_SHOWN]


def long_silence() -> list[Waiting]:
    """An entry if no run has succeeded for too long. Three queries at most."""
    found = silence()
    if found is None:
        return []
    title = f"No retention run has succeeded since {day_and_minute(found.since)} {zone(found.since)}"
    address = reverse("sweeps:list")
    return [Waiting(title, address, "View runs", "hourglass", found.why, time_since(found.since), "red")]


def growing(backlogs: Sequence[GrowingBacklog]) -> list[Waiting]:
    """Policies that fall behind."""
    address = reverse("sweeps:list")
    return [
        Waiting("Retention falls behind", address, "View runs", "hourglass", growth.sentence, "", "orange")
        for growth in backlogs[:MOST_SHOWN]
    ]


@on_home("Holds to review", "retention.place_hold")
def reviews_of_holds(user: User) -> HomeParts:
    """Holds whose review date has come or is near. One query, over the holds in force."""
    today = now().date()
    near = LegalHold.objects.in_force().filter(review_on__lte=today + REVIEW_SOON).order_by("review_on", "pk")
    return HomeParts(
        waiting=[
            Waiting(
                f"Hold {hold} {'is past' if hold.review_on < today else 'reaches'} its review date",
                hold.get_absolute_url(),
                "Review hold",
                "gavel",
                facts="Without a review it stays in force.",
                age=f"{hold.review_on.day} {hold.review_on:%b}",
                colour="purple",
            )
            for hold in near[:MOST_SHOWN]
        ]
    )
