"""Background jobs of the log. Sequencing and signing cannot wait and are not jobs (see `sequencer`)."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal, TypeAlias

from django.db import transaction
from procrastinate.contrib.django import app
from procrastinate.contrib.django.models import ProcrastinateJob
from procrastinate.exceptions import AlreadyEnqueued

from memadmin.audit.transparency import anchors, status, verification
from memadmin.web.periodic import is_stale

VERIFYING = "verify_log"
"""Lock of the jobs that verify the log: only one runs."""

VerificationState: TypeAlias = Literal["", "waiting", "running"]


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="anchor_checkpoints", lock="anchor_checkpoints")
def anchor_checkpoints(timestamp: int) -> None:
    """Sends the newest checkpoint to the anchors outside of the database."""
    if not is_stale(timestamp):
        anchors.publish()


@app.task(queueing_lock="verify_log", lock=VERIFYING)
def verify_log() -> None:
    """Verifies the whole log on request and stores the verdict for the log page."""
    verification.verify()


@app.task(queueing_lock="verify_old_log", lock=VERIFYING)
def verify_old_log() -> None:
    """Verifies the log if the last verdict is old: of several jobs that open pages queue, the first does the work."""
    if status.is_old(status.latest_verdict()):
        verification.verify()


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="verify_log_daily", lock=VERIFYING)
def verify_log_daily(timestamp: int) -> None:
    """Verifies the log when the last verdict is old, or as soon as possible when there is none."""
    if not is_stale(timestamp) and status.is_old(status.latest_verdict()):
        verification.verify()


def verification_state() -> VerificationState:
    """Whether a verification is running, or waits for a worker. One query or two, each of one row by its index."""
    if ProcrastinateJob.objects.filter(lock=VERIFYING, status="doing").exists():
        return "running"
    waiting = ProcrastinateJob.objects.filter(queueing_lock__in=("verify_log", "verify_old_log"), status="todo")
    return "waiting" if waiting.exists() else ""


def queue_verification_of_old_log() -> VerificationState:
    """Queues `verify_old_log` unless it waits already; returns the state after that."""
    with suppress(AlreadyEnqueued), transaction.atomic():
        verify_old_log.defer()
    return "waiting"
