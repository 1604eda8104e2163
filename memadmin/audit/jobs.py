"""Background work on the log. What cannot wait, sequencing and signing, is not a job (see `sequencer`)."""

from __future__ import annotations

from procrastinate.contrib.django import app

from memadmin.audit import anchors, verification
from memadmin.web.ticks import is_stale


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="anchor_checkpoints", lock="anchor_checkpoints")
def anchor_checkpoints(timestamp: int) -> None:
    """Brings the newest checkpoint to places outside of the database."""
    if not is_stale(timestamp):
        anchors.publish()


@app.task(queueing_lock="verify_log", lock="verify_log")
def verify_log() -> None:
    """Verifies the whole log and keeps the verdict for its page: what somebody asked for there."""
    verification.verify()
