"""Background jobs on sessions. Each is only a wake-up call that finds its own work, so a lost one loses nothing."""

from __future__ import annotations

from django.utils.timezone import now
from procrastinate.contrib.django import app

from memadmin.web import job_queue
from memadmin.web.periodic import is_stale
from sessions_app.models import SessionStore, TextSearch
from sessions_app.services import discovery, health_checks, inspection, outbox, path_watch, patterns


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="find_subjects", lock="find_subjects")
def find_subjects(timestamp: int) -> None:
    """Reads subject and ticket from the ids of new sessions."""
    if is_stale(timestamp):
        return
    for store in SessionStore.objects.all():
        patterns.apply_patterns(store)


@app.periodic(cron="* * * * * */30")
@app.task(queueing_lock="discover_sessions", lock="discover_sessions")
def discover_sessions(timestamp: int) -> None:
    """Looks through the stores without triggers for new sessions."""
    if not is_stale(timestamp):
        discovery.discover_sessions()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="check_stores", lock="check_stores")
def check_stores(timestamp: int) -> None:
    """Checks the health of stores, for the pages that list them."""
    if not is_stale(timestamp):
        health_checks.check_stores()


@app.periodic(cron="* * * * * */30")
@app.task(queueing_lock="look_for_new_stores", lock="look_for_new_stores")
def look_for_new_stores(timestamp: int) -> None:
    """Connects new places of watched paths. Separate from `discover_sessions`, which a wrong file must not delay."""
    if not is_stale(timestamp):
        path_watch.look_for_new_stores()


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="inspect_sessions", lock="inspect_sessions")
def inspect_sessions(timestamp: int) -> None:
    """Inspects quiet sessions. Separate from `find_subjects`, because long sessions take seconds each."""
    if not is_stale(timestamp):
        inspection.inspect_quiet_sessions()


@app.periodic(cron="* * * * * */5")
@app.task(queueing_lock="drain_outbox", lock="drain_outbox")
def drain_outbox(timestamp: int) -> None:
    """Moves the records of the fences into the audit log."""
    if not is_stale(timestamp):
        outbox.drain_outbox()


@app.periodic(cron="17 * * * *")
@app.task(queueing_lock="forget_old_searches")
def forget_old_searches(timestamp: int) -> None:
    """Deletes expired searches."""
    if not is_stale(timestamp):
        TextSearch.objects.expired(now()).delete()


@app.periodic(cron="* * * * *")
@app.task(queueing_lock="retry_stalled_jobs")
async def retry_stalled_jobs(timestamp: int) -> None:
    """Recovers the jobs of workers that died."""
    if not is_stale(timestamp):
        await job_queue.recover_orphans()


@app.periodic(cron="29 3 * * *")
@app.task(queueing_lock="forget_old_jobs")
async def forget_old_jobs(timestamp: int) -> None:
    """Deletes failed jobs after three days."""
    if not is_stale(timestamp):
        await job_queue.forget_old_jobs()
