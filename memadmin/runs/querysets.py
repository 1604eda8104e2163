"""Querysets of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

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
