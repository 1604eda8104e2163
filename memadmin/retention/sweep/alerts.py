"""E-mails to compliance about sweeps that need a person: numbers and names of policies and stores, no personal data."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max, QuerySet
from django.urls import reverse
from django.utils.timezone import now

from memadmin.accounts.mails import mail_those_with
from memadmin.retention.models import SweepAlert
from memadmin.retention.sweep.metrics import GrowingBacklog, metrics_of, recent_runs
from memadmin.retention.sweep.silence import silence
from memadmin.runs.models import Run

logger = logging.getLogger(__name__)

PERMISSION = "retention.approve_policy"
"""Holders decide about policies, and so about their runs."""

IS_NEWS = timedelta(days=7)
"""Older runs are in the ledger, and no mail is sent about them any more."""

PARKED = (Run.State.STOPPED, Run.State.FAILED)

About = SweepAlert.About


@dataclass(frozen=True, slots=True)
class SweepNews:
    """Something about a run for which no mail was sent to compliance yet."""

    run: Run
    about: SweepAlert.About
    title: str
    sentence: str
    growth: GrowingBacklog | None = None


def send_alerts() -> int:
    """Sends the mails that are due and returns how many. Ends at the first that a mail server refuses: the next round
    sends it.
    """
    if not settings.MAIL_SERVER:
        return 0
    count = 0
    for news in news_of(recent_runs()):
        if not sent(news):
            break
        count += 1
    return count


@transaction.atomic
def sent(news: SweepNews) -> bool:
    """Whether a mail was sent, or nobody can be reached."""
    path = reverse("sweeps:run", args=[news.run.number])
    if not mail_those_with(PERMISSION, title=news.title, sentence=news.sentence, path=path):
        return False
    SweepAlert.objects.create(run=news.run, about=news.about, result=news.growth.newest if news.growth else None)
    return True


def news_of(runs: list[Run]) -> Iterator[SweepNews]:
    """News about these runs for which no mail was sent yet, newest run first."""
    for run in runs:
        if run.state in PARKED and not was_mailed(run, About.STOPPED, since_last_entry=True):
            state = "stopped and needs a decision" if run.state == Run.State.STOPPED else "failed"
            yield SweepNews(
                run,
                About.STOPPED,
                f"The retention run {run} {state}",
                f"The retention run {run} {state}. {run.reason} Its page:",
            )
        if run.state == Run.State.COMPLETE_WITH_EXCEPTIONS and is_news(run) and not was_mailed(run, About.INCOMPLETE):
            yield SweepNews(
                run,
                About.INCOMPLETE,
                f"The retention run {run} is incomplete",
                f"The retention run {run} could not take everything that was due. Its page says what and why:",
            )
    for growth in metrics_of(runs).growing:
        if not SweepAlert.objects.filter(about=About.BACKLOG, result__in=[each.pk for each in growth.results]).exists():
            run = next(run for run in runs if run.pk == growth.newest.run_id)
            yield SweepNews(run, About.BACKLOG, "Retention falls behind", f"{growth.sentence} The last run:", growth)
    # A worker sends this mail: if none is running, the overview and check_deploy say it alone.
    if (found := silence()) and found.run and not was_mailed_lately(found.since):
        yield SweepNews(found.run, About.SILENT, "No retention run succeeds", f"{found.sentence} Its page:")


def was_mailed_lately(since: datetime) -> bool:
    """Whether a mail about this silence was sent in the last week; later it is sent again."""
    return SweepAlert.objects.filter(about=About.SILENT, at__gt=max(since, now() - IS_NEWS)).exists()


def is_news(run: Run) -> bool:
    return run.ended_at is not None and run.ended_at > now() - IS_NEWS


def was_mailed(run: Run, about: str, *, since_last_entry: bool = False) -> bool:
    """Whether a mail about it was sent; with `since_last_entry`, since the newest entry of the run's log."""
    alerts: QuerySet[SweepAlert] = run.sweep_alerts.filter(about=about)
    if since_last_entry and (last := run.log.aggregate(at=Max("at"))["at"]):
        alerts = alerts.filter(at__gte=last)
    return alerts.exists()
