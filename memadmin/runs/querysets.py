"""Querysets of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Exists, OuterRef, Q, Value
from django.db.models.functions import Cast, Coalesce, Concat, Now

if TYPE_CHECKING:
    from memadmin.runs.models import Run


class RunQuerySet(models.QuerySet["Run"]):
    def unfinished(self) -> RunQuerySet:
        """Runs that have not ended, the newest first."""
        return self.filter(ended_at__isnull=True).order_by("-pk")

    def finished(self) -> RunQuerySet:
        """Runs that have ended, the newest first."""
        return self.filter(ended_at__isnull=False).order_by("-pk")

    def workable(self) -> RunQuerySet:
        """Runs that a worker may take now: waiting or running, due, and under no lease that is still valid."""
        from memadmin.runs.models import Run

        return self.filter(
            Q(lease_until__isnull=True) | Q(lease_until__lt=Now()),
            Q(retry_at__isnull=True) | Q(retry_at__lte=Now()),
            state__in=[Run.State.WAITING, Run.State.RUNNING],
        ).order_by("pk")

    def oldest_due_first(self) -> RunQuerySet:
        """Those that could have been taken for the longest time come first.

        So each gets its turn: one that was taken, and waits again, is due later than those that have not been taken.
        """
        return self.order_by(Coalesce("retry_at", "lease_until", "chunk_at", "requested_at"), "pk")

    def without_job(self, jobs: models.QuerySet[Any]) -> RunQuerySet:
        """Runs for which none of these jobs was queued. No query by itself."""
        lock = Concat(Value("run-"), Cast(OuterRef("pk"), models.TextField()))
        return self.filter(~Exists(jobs.filter(queueing_lock=lock)))
