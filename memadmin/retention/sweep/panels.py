"""Retention runs on the overview."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.retention.sweep.alerts import PARKED
from memadmin.retention.sweep.metrics import metrics_of, recent_runs
from memadmin.retention.sweep.silence import silence
from memadmin.runs.models import Run
from sessions_app.extensions import Panel, on_overview

VIEW = "retention.view_policy"

RUNS = 8
"""Runs that the tile looks at: enough for a backlog that grows."""


@on_overview
def retention_tile(user: User) -> Panel | None:
    """What is still due, the next run, and what needs a person. Five queries at most."""
    if not user.has_perm(VIEW):
        return None
    runs = recent_runs(RUNS)
    parked = next((run for run in runs if run.state in PARKED), None)
    ended = next((run for run in runs if run.is_finished), None)
    incomplete = ended if ended and ended.state == Run.State.COMPLETE_WITH_EXCEPTIONS else None
    shown = {"metrics": metrics_of(runs), "parked": parked, "silence": silence(), "incomplete": incomplete}
    return Panel("retention/_tile.html", shown)
