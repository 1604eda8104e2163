"""Background jobs of accounts. A job is only a wake-up: it searches for due work, so a lost job loses nothing."""

from __future__ import annotations

from django.core.management import call_command
from procrastinate.contrib.django import app

from memadmin.accounts import notices
from memadmin.accounts.people import invitations
from memadmin.web.periodic import is_stale


@app.periodic(cron="* * * * * */15")
@app.task(queueing_lock="send_notices", lock="send_notices")
def send_notices(timestamp: int) -> None:
    """Sends due notices to approvers of grants by e-mail."""
    if not is_stale(timestamp):
        notices.send_notices()


@app.periodic(cron="23 3 * * *")
@app.task(queueing_lock="forget_old_logins")
def forget_old_logins(timestamp: int) -> None:
    """Deletes expired sign-in sessions, and links of old invitations, from the database."""
    if not is_stale(timestamp):
        call_command("clearsessions")
        invitations.forget_old_links()
