"""State of the job queue: recovery after a killed worker, and jobs that are stuck, failed or overdue."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Max, Q, QuerySet
from django.db.models.functions import Now
from django.template.defaultfilters import pluralize
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Status
from procrastinate.manager import QUEUEING_LOCK_CONSTRAINT

logger = logging.getLogger(__name__)

DEAD_AFTER = timedelta(seconds=30)
"""Age of the last heartbeat of a worker that is taken for dead; workers send one every five seconds."""

STUCK_AFTER = timedelta(minutes=3)
"""Recovery takes a minute and a half at most, so an older orphan is one that it did not help."""

OVERDUE_AFTER = timedelta(minutes=10)
FAILED_WITHIN = timedelta(days=1)

KEPT_HOURS = 3 * 24
"""Failed jobs are deleted after this time; successful ones are deleted at once."""


async def recover_orphans() -> int:
    """Queues the jobs of dead workers again, which procrastinate finds but leaves; returns their number.

    Each by itself: a job that cannot be recovered must not keep the others waiting.
    """
    count = 0
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=DEAD_AFTER.total_seconds()):
        try:
            await recover(job)
            count += 1
        except ConnectorException as problem:
            # Another worker was faster, or the worker is alive after all and has just finished it.
            logger.warning("job %s (%s) was not recovered: %s", job.id, job.task_name, problem.__cause__ or problem)
    return count


async def recover(job: Job) -> None:
    """Queues the job again. If the same job waits already, it does the work: the orphan, whose lock keeps it from
    starting, is deleted. Raises ConnectorException.
    """
    try:
        await app.job_manager.retry_job(job)
    except UniqueViolation as problem:
        if problem.constraint_name != QUEUEING_LOCK_CONSTRAINT:
            raise
        await app.job_manager.finish_job(job, Status.ABORTED, delete_job=True)


async def forget_old_jobs() -> None:
    """Deletes jobs that ended without success, after KEPT_HOURS."""
    await app.job_manager.delete_old_jobs(KEPT_HOURS, include_failed=True, include_cancelled=True, include_aborted=True)


@dataclass(frozen=True, slots=True)
class JobProblem:
    """A number of jobs that are not being done, as a sentence for operators."""

    check: str
    sentence: str


def problems() -> list[JobProblem]:
    """Problems of the queue, worst first. Three queries; the table has unfinished and failed jobs only."""
    found = []
    if count := stuck_jobs().count():
        sentence = f"{count:,} job{pluralize(count)} of a dead worker did not continue. Restart the worker."
        found.append(JobProblem("jobs-stuck", sentence))
    if count := overdue_jobs().count():
        sentence = (
            f"{count:,} job{pluralize(count)} {pluralize(count, 'has,have')} waited for more than"
            f" {OVERDUE_AFTER.seconds // 60} minutes. Check that enough workers are running."
        )
        found.append(JobProblem("jobs-overdue", sentence))
    if count := failed_jobs().count():
        sentence = f"{count:,} job{pluralize(count)} failed within the last day. See the worker log."
        found.append(JobProblem("jobs-failed", sentence))
    return found


def has_problems() -> bool:
    """Whether any job is stuck, overdue or failed. At most three queries, each ending at the first such job."""
    return stuck_jobs().exists() or overdue_jobs().exists() or failed_jobs().exists()


def stuck_jobs() -> QuerySet[ProcrastinateJob]:
    """Jobs of workers that died, and that were not recovered in time."""
    is_dead = Q(worker__isnull=True) | Q(worker__last_heartbeat__lt=Now() - STUCK_AFTER)
    return with_last_event("doing").filter(is_dead, last_event_at__lt=Now() - STUCK_AFTER)


def overdue_jobs() -> QuerySet[ProcrastinateJob]:
    is_due = Q(scheduled_at__isnull=True) | Q(scheduled_at__lt=Now() - OVERDUE_AFTER)
    return with_last_event("todo").filter(is_due, last_event_at__lt=Now() - OVERDUE_AFTER)


def failed_jobs() -> QuerySet[ProcrastinateJob]:
    return with_last_event("failed").filter(last_event_at__gt=Now() - FAILED_WITHIN)


def with_last_event(status: str) -> QuerySet[Any]:
    """Jobs with this status and the time at which they got it."""
    jobs: QuerySet[Any] = ProcrastinateJob.objects.annotate(last_event_at=Max("procrastinateevent__at"))
    return jobs.filter(status=status)
