"""Reminders of due dates, after 50, 75 and 90 % of the time, and alerts about cases that stand still."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import date, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils.timezone import now

from memadmin import audit
from memadmin.erasure import audit_events
from memadmin.erasure.deadlines import reminder_due
from memadmin.erasure.mails import mail_handlers
from memadmin.erasure.models import RequestNote, SubjectRequest
from memadmin.runs.models import Run

logger = logging.getLogger(__name__)

PARKED = (Run.State.STOPPED, Run.State.FAILED)
"""States of a run that does not continue before a person decides."""

MOST_ALERTS = 20


class NotSent(Exception):
    """A mail server has refused a mail."""


def send_reminders(today: date) -> int:
    """Sends the reminders that are due and returns how many; what a mail server refuses is sent later."""
    numbers = SubjectRequest.objects.open().values_list("pk", flat=True)
    return sum(sent(send_reminder, number, today) for number in numbers)


def sent(send: Callable[..., bool], number: int, *given: object) -> bool:
    """Whether a mail about one request was sent. Each has a transaction of its own: an error stops no other."""
    try:
        return send(number, *given)
    except NotSent:
        raise
    except Exception:
        logger.exception("the mail about request %s was not sent", number)
        return False


@transaction.atomic
def send_reminder(number: int, today: date) -> bool:
    request = SubjectRequest.objects.select_for_update(skip_locked=True).open().filter(pk=number).first()
    if request is None:
        return False
    percent = reminder_due(request.received_on, request.due_on, today, reminded=request.reminded)
    if not percent:
        return False
    days = (request.due_on - today).days
    left = f"{days} {'day' if days == 1 else 'days'} left" if days >= 0 else "overdue"
    sentence = f"{request} ({request.get_kind_display()}) is due on {request.due_on:%-d %B %Y}: {left}. Its page:"
    if not mail_handlers(request, title=f"{request} is due on {request.due_on:%-d %B}", sentence=sentence):
        return False
    audit.record(
        audit_events.REQUEST_REMINDED, target=request, subject=request.subject_id, counters={"percent": percent}
    )
    request.note(RequestNote.Code.REMINDED)
    SubjectRequest.objects.filter(pk=request.pk).update(reminded=percent)
    return True


def send_alerts() -> int:
    """Tells those who handle requests about each run that has stopped or failed, once, and returns how many.

    MOST_ALERTS in a round, and none after one that a mail server refuses: the next round sends the others.
    """
    if not settings.MAIL_SERVER:
        return 0
    parked = SubjectRequest.objects.open().filter(run__state__in=PARKED)
    count = 0
    for number in parked.values_list("pk", flat=True):
        try:
            count += sent(send_alert, number)
        except NotSent:
            break
        if count == MOST_ALERTS:
            break
    return count


@transaction.atomic
def send_alert(number: int) -> bool:
    parked = SubjectRequest.objects.open().filter(pk=number, run__state__in=PARKED)
    request = parked.select_related("run").select_for_update(skip_locked=True, of=("self",)).first()
    if request is None or request.run is None:
        return False
    # A run that was resumed, and stopped again, has a newer entry in its log.
    stopped_at = request.run.log.aggregate(at=Max("at"))["at"]
    if stopped_at and request.notes.filter(code=RequestNote.Code.ALERTED, at__gte=stopped_at).exists():
        return False
    # Of a batch one case is enough for a day.
    alerts = RequestNote.objects.filter(code=RequestNote.Code.ALERTED, at__gte=now() - timedelta(days=1))
    if alerts.filter(request__batch_lines__batch__lines__request=request).exists():
        return False
    sentence = f"{request} ({request.get_kind_display()}) stands still and needs a decision. Its page says why:"
    if not mail_handlers(request, title=f"{request} stands still", sentence=sentence):
        raise NotSent
    request.note(RequestNote.Code.ALERTED)
    return True
