"""Background jobs of requests. Each is only a wake-up: it looks for due work."""

from __future__ import annotations

from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.erasure.access_copy import jobs as access_copy_jobs
from memadmin.erasure.reminders import send_alerts, send_reminders
from memadmin.web.periodic import is_stale

__all__ = ["access_copy_jobs", "remind_of_requests"]


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="remind_of_requests", lock="remind_of_requests")
def remind_of_requests(timestamp: int) -> None:
    """Sends reminders of requests that are due soon, and alerts about requests and batches whose run has stopped."""
    if not is_stale(timestamp):
        send_reminders(now().date())
        send_alerts()
