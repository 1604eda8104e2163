"""Background jobs of the log. Sequencing and signing cannot wait and are not jobs (see `sequencer`)."""

from __future__ import annotations

from datetime import timedelta

from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.audit.transparency import anchors, status, verification
from memadmin.web.periodic import is_stale

VERDICT_LASTS = timedelta(days=1)


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="anchor_checkpoints", lock="anchor_checkpoints")
def anchor_checkpoints(timestamp: int) -> None:
    """Sends the newest checkpoint to the anchors outside of the database."""
    if not is_stale(timestamp):
        anchors.publish()


@app.task(queueing_lock="verify_log", lock="verify_log")
def verify_log() -> None:
    """Verifies the whole log on request and stores the verdict for the log page."""
    verification.verify()


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="verify_log_daily", lock="verify_log")
def verify_log_daily(timestamp: int) -> None:
    """Verifies the log when the last verdict is a day old, or as soon as possible when there is none."""
    verdict = status.latest_verdict()
    if not is_stale(timestamp) and (verdict is None or now() > verdict.at + VERDICT_LASTS):
        verification.verify()
