"""Reminders of due dates: after 50, 75 and 90 % of the time."""

from __future__ import annotations

from datetime import date

from django.db import transaction

from memadmin import audit
from memadmin.erasure import audit_events
from memadmin.erasure.deadlines import reminder_due
from memadmin.erasure.mails import mail_handlers
from memadmin.erasure.models import RequestNote, SubjectRequest


def send_reminders(today: date) -> int:
    """Sends the reminders that are due and returns how many; what a mail server refuses is sent later.

    Each in a transaction of its own: one that fails does not stop the others.
    """
    return sum(
        send_reminder(request_number, today)
        for request_number in SubjectRequest.objects.open().values_list("pk", flat=True)
    )


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
