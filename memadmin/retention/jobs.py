"""Background jobs of retention."""

from __future__ import annotations

from django.conf import settings
from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.retention.sweep.alerts import send_alerts
from memadmin.retention.sweep.nights import start_of_night
from memadmin.retention.sweep.starting import RUN_KIND, request_sweep
from memadmin.runs.models import Run
from memadmin.web.periodic import is_stale


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="begin_nightly_sweep")
def begin_nightly_sweep(timestamp: int) -> None:
    """Requests the sweep of this night, once. Asked every ten minutes: a worker may have been away at the hour."""
    began_at = start_of_night()
    if is_stale(timestamp) or now() >= began_at + settings.RETENTION_WINDOW:
        return
    if not Run.objects.filter(kind=RUN_KIND, requested_at__gte=began_at, parameters__policy="").exists():
        request_sweep()


@app.periodic(cron="*/10 * * * *")
@app.task(queueing_lock="tell_of_sweeps", lock="tell_of_sweeps")
def tell_of_sweeps(timestamp: int) -> None:
    """Mails compliance about runs that stopped, failed or are incomplete, and about backlogs that grow."""
    if not is_stale(timestamp):
        send_alerts()
