"""Background job of home pages."""

from __future__ import annotations

from procrastinate.contrib.django import app

from memadmin.home import day_counts
from memadmin.web.periodic import is_stale


@app.periodic(cron="*/5 * * * *")
@app.task(queueing_lock="count_days", lock="count_days")
def count_days(timestamp: int) -> None:
    """Counts today's rows again, for the charts, and yesterday's a last time."""
    if not is_stale(timestamp):
        day_counts.count_days()
