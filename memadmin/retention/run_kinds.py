"""Kinds of runs of retention."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.retention.sweep import work
from memadmin.retention.sweep.ending import NOT_VACUUMED
from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.retention.targets.base import KeptReason
from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run


@register
class RetentionKind(RunKind):
    name = RUN_KIND
    title = "Retention"
    unit = "rows"
    counters: ClassVar = {"items": "Items", "held": "Kept by holds", "live": "Kept, in use"}
    sentences: ClassVar = {
        **KeptReason.SENTENCES,
        work.AWAY: "The store did not respond and was skipped.",
        NOT_VACUUMED: "The table was not vacuumed: the role may not, or it took too long. Autovacuum will come.",
        work.REFUSED: "The store was skipped: it was removed, or its times are in another zone than it says.",
    }
    hints: ClassVar = frozenset(
        {
            KeptReason.ACTIVE,
            KeptReason.BUSY,
            KeptReason.DETACHED,
            KeptReason.KEPT_WITH_TURN,
            KeptReason.NO_TIME,
            NOT_VACUUMED,
        }
    )

    def work(self, lease: Lease) -> None:
        work.work(lease)

    def before_resume(self, run: Run, by: User) -> bool:
        """Questions of runs that would take far more than expected, for those who approve changes of policies."""
        if not by.has_perm("retention.approve_policy"):
            return False
        work.answer(run)
        return True

    def may_resume(self, run: Run) -> bool:
        """True: a run that stopped because it would take far more than expected is resumed by a person who agrees."""
        return True

    def describe(self, run: Run) -> str:
        return f"Policy {run.parameters['policy']}" if run.parameters.get("policy") else "All policies"

    def url(self, run: Run, viewer: User) -> str:
        return reverse("sweeps:run", args=[run.number]) if viewer.has_perm("retention.view_policy") else ""
