"""Figures of the workers and their queue, for the page System and the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Min
from django.utils.timezone import now
from procrastinate.contrib.django.models import ProcrastinateJob, ProcrastinateWorker

from memadmin.web import job_queue

SILENT_AFTER = timedelta(minutes=1)
"""Age of the last heartbeat of a worker that counts as silent; workers send one every five seconds."""
FORGOTTEN_AFTER = timedelta(hours=1)
"""Age of the last heartbeat of a worker that is not mentioned any more."""


@dataclass(frozen=True, slots=True)
class Workers:
    running: int
    silent: int
    last_heartbeat: datetime | None


def workers() -> Workers:
    """Worker processes of the last hour. One query."""
    seen = ProcrastinateWorker.objects.filter(last_heartbeat__gt=now() - FORGOTTEN_AFTER)
    beats = list(seen.order_by("-last_heartbeat").values_list("last_heartbeat", flat=True))
    running = sum(beat > now() - SILENT_AFTER for beat in beats)
    return Workers(running, len(beats) - running, beats[0] if beats else None)


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """Jobs that are due, and since when the oldest of them waits."""

    count: int
    oldest_at: datetime | None


def waiting_jobs() -> WaitingJobs:
    """One query; the table has unfinished and failed jobs only."""
    due = job_queue.with_last_event("todo").filter(scheduled_at__isnull=True)
    figures = due.aggregate(count=Count("pk"), at=Min("last_event_at"))
    return WaitingJobs(figures["count"], figures["at"])


def jobs_by_state() -> dict[str, int]:
    """Jobs that run, failed within a day, are stuck, or overdue. Four queries."""
    return {
        "running": ProcrastinateJob.objects.filter(status="doing").count(),
        "failed": job_queue.failed_jobs().count(),
        "stuck": job_queue.stuck_jobs().count(),
        "overdue": job_queue.overdue_jobs().count(),
    }
