"""Reminders of due dates, after 50, 75 and 90 % of the time, and alerts about cases and batches with a stopped run."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.timezone import now

from memadmin import audit
from memadmin.counting import counted
from memadmin.erasure import audit_events
from memadmin.erasure.batches import audit_events as batch_events
from memadmin.erasure.deadlines import reminder_due
from memadmin.erasure.mails import mail_handlers
from memadmin.erasure.models import RequestBatch, RequestNote, SubjectRequest
from memadmin.runs.models import Run

logger = logging.getLogger(__name__)

PARKED = (Run.State.STOPPED, Run.State.FAILED)
"""States of a run that does not continue before a person decides."""

TOLD = "Those who handle requests were told."
"""Entry of a run's log after such a mail. No other is sent while it is the newest entry."""

MOST_ALERTS = 20


class NotSent(Exception):
    """A mail server has refused a mail."""


def send_reminders(today: date) -> int:
    """Sends the reminders that are due and returns how many; what a mail server refuses is sent later.

    A batch has one reminder, its cases have none: there can be thousands, which are due with it.
    """
    return sum(
        sent(send_reminder, number, waiting, today)
        for waiting in (SubjectRequest.objects.to_answer(), RequestBatch.objects.open())
        for number in waiting.values_list("pk", flat=True)
    )


def sent(send: Callable[..., bool], number: int, *given: object) -> bool:
    """Whether one mail was sent. Each has a transaction of its own: an error stops no other."""
    try:
        return send(number, *given)
    except NotSent:
        raise
    except Exception:
        logger.exception("%s %s: the mail was not sent", send.__name__, number)
        return False


@transaction.atomic
def send_reminder(number: int, waiting: QuerySet[SubjectRequest] | QuerySet[RequestBatch], today: date) -> bool:
    about = waiting.select_for_update(skip_locked=True).filter(pk=number).first()
    if about is None:
        return False
    percent = reminder_due(about.received_on, about.due_on, today, reminded=about.reminded)
    if not percent:
        return False
    days = (about.due_on - today).days
    left = f"{counted(days, 'days')} left" if days >= 0 else "overdue"
    sentence = f"{name_of(about)} is due on {about.due_on:%-d %B %Y}: {left}. Its page:"
    if not mail_handlers(about, title=f"{about} is due on {about.due_on:%-d %B}", sentence=sentence):
        return False
    counters = {"percent": percent}
    if isinstance(about, SubjectRequest):
        audit.record(audit_events.REQUEST_REMINDED, target=about, subject=about.subject_id, counters=counters)
        about.note(RequestNote.Code.REMINDED)
    else:
        audit.record(batch_events.BATCH_REMINDED, target=about, counters=counters)
    waiting.filter(pk=about.pk).update(reminded=percent)
    return True


def name_of(about: SubjectRequest | RequestBatch) -> str:
    return f"{about} ({about.get_kind_display()})" if isinstance(about, SubjectRequest) else f"Batch {about}"


def send_alerts() -> int:
    """Mails those who handle requests about each run that has stopped or failed, once; returns the number of mails.

    Runs of open cases, among them those that build copies, and of open batches. MOST_ALERTS in a round, and none after
    one that a mail server refuses: the next round sends the others.
    """
    if not settings.MAIL_SERVER:
        return 0
    count = 0
    for number in parked().values_list("pk", flat=True):
        try:
            count += sent(send_alert, number)
        except NotSent:
            break
        if count == MOST_ALERTS:
            break
    return count


RUN_OWNERS = ("subject_request", "request_batch", "previewed_batch")
"""Relations of a run to what it works for."""


def parked() -> QuerySet[Run]:
    """Runs that need a person, of cases and batches that are open, with these."""
    batches = RequestBatch.objects.open().order_by()
    belongs = Q(subject_request__in=SubjectRequest.objects.open().order_by())
    belongs |= Q(request_batch__in=batches) | Q(previewed_batch__in=batches)
    return Run.objects.filter(belongs, state__in=PARKED).select_related(*RUN_OWNERS).order_by("pk")


def owner_of(run: Run) -> SubjectRequest | RequestBatch:
    """The case or batch that a run of `parked` works for."""
    owner: SubjectRequest | RequestBatch = next(filter(None, (getattr(run, name, None) for name in RUN_OWNERS)))
    return owner


@transaction.atomic
def send_alert(number: int) -> bool:
    run = parked().select_for_update(no_key=True, skip_locked=True, of=("self",)).filter(pk=number).first()
    # A run that was resumed, and stopped again, has a newer entry in its log.
    if run is None or run.log.values_list("text", flat=True).first() == TOLD:
        return False
    about = owner_of(run)
    if isinstance(about, SubjectRequest):
        # One case of a batch is enough for a day.
        alerts = RequestNote.objects.filter(code=RequestNote.Code.ALERTED, at__gte=now() - timedelta(days=1))
        if alerts.filter(request__batch_lines__batch__lines__request=about).exists():
            return False
    sentence = f"{name_of(about)} stands still and needs a decision. Its page says why:"
    if not mail_handlers(about, title=f"{about} stands still", sentence=sentence):
        raise NotSent
    run.note(TOLD)
    if isinstance(about, SubjectRequest):
        about.note(RequestNote.Code.ALERTED)
    return True
