"""Job that deletes copies whose time is over, and files that belong to none."""

from __future__ import annotations

from procrastinate.contrib.django import app

from memadmin.erasure.access_copy import deleting, files
from memadmin.web.periodic import is_stale


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="delete_access_copies")
def delete_access_copies(timestamp: int) -> None:
    """Deletes expired copies of people's data, and files without a copy."""
    if not is_stale(timestamp):
        deleting.delete_expired()
        files.delete_orphans()
