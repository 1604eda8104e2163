"""Runs worked off in the test's own process, as a worker would."""

from __future__ import annotations

from typing import Any

from memadmin.runs.engine import carry_on
from memadmin.runs.models import Run
from sessions_app.models import Redaction
from sessions_app.redaction.outcome import RedactionOutcome


def work_off() -> int:
    """Works on every run that is due; returns how many ended."""
    return sum(carry_on(run).is_finished for run in Run.objects.workable())


def report_of(redaction: Redaction) -> dict[str, Any]:
    """What came of a redaction: its counters, and as `reasons` what was left, by code, store and count."""
    run = Run.objects.get(pk=redaction.run_id)
    outcome = vars(RedactionOutcome.of(run))
    return {**outcome, "reasons": [[why, store, count] for (why, store), count in sorted(outcome["reasons"].items())]}
