"""Long work and background jobs on the home page."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now

from memadmin.home.parts import HomeParts, Waiting, on_home, time_since
from memadmin.runs.kinds import all_kinds
from memadmin.runs.models import Run
from memadmin.web import job_queue

IS_NEWS = timedelta(days=7)
"""A run that failed earlier is in the list of finished ones alone."""

MOST_RUNS = 3

NEWEST = 50
"""Runs that are looked at for failed ones."""


@on_home("Runs and jobs", "runs.view_run", roles=("administrator",))
def runs_and_jobs(user: User) -> HomeParts:
    """Runs that stopped or failed, and problems of the job queue. Five queries."""
    titles = {kind.name: kind.title for kind in all_kinds()}
    stopped = list(Run.objects.filter(ended_at__isnull=True, state=Run.State.STOPPED).order_by("number")[:MOST_RUNS])
    newest = Run.objects.order_by("-number")[:NEWEST]
    failed = [
        run for run in newest if run.state == Run.State.FAILED and run.ended_at and run.ended_at > now() - IS_NEWS
    ]
    entries = [
        Waiting(
            f"{titles.get(run.kind, 'Run')} {run} {'stopped' if run.state == Run.State.STOPPED else 'failed'}",
            run.get_absolute_url(),
            "View run",
            "alert-octagon",
            facts=run.reason,
            age=time_since(run.ended_at or run.chunk_at or run.requested_at),
            colour="red",
        )
        for run in [*stopped, *failed[:MOST_RUNS]]
    ]
    entries += [
        Waiting(problem.sentence, reverse("runs:list"), "View runs", "alert-octagon", colour="red")
        for problem in job_queue.problems()
    ]
    return HomeParts(waiting=entries)
