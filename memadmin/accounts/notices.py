"""E-mail notices to approvers of grants: a grant waits, opened without a second person, or needs a review; a person
opened unusually many sessions within an hour; a person got a right that opens content, decides or administers.

Due notices are derived from the grants and the log; `Notice` stores those that were sent. So a crashed worker or an
unavailable mail server loses nothing, and no request waits for either. A notice contains the number of sessions and a
link, but no names or reasons, because e-mail is not confidential.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.grants.services import DECIDE
from memadmin.accounts.models import ContentGrant, Notice
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.counting import counted, noun_for
from memadmin.web.retry import take_try

logger = logging.getLogger("memadmin.notices")

A_ROUND = 100
"""Maximum of notices of a kind in one round."""

EVENT_IS_NEWS = timedelta(days=7)
"""Older events are in the log but are not notified."""

Kind = Notice.Kind

OF_EVENTS = {Kind.READING: audit_events.READING_NOTICED, Kind.ROLE: audit_events.ROLE_GRANTED}
"""Notices about an event of the log, and the type of the event."""

SENT = {Kind.READING: audit_events.READING_TOLD, Kind.ROLE: audit_events.ROLE_TOLD}
"""Events of sent notices; those about grants have one of their own."""

SUBJECTS = {
    Kind.REQUESTED: "A grant request waits for a decision",
    Kind.OPENED_ALONE: "A grant opened without approval",
    Kind.REVIEW: "A grant has ended and must be reviewed",
    Kind.READING: "A person opened unusually many sessions",
    Kind.ROLE: "A person got a role",
}
TEXTS = {
    Kind.REQUESTED: "A person requests access to {count} locked {sessions}. Decide here:",
    Kind.OPENED_ALONE: (
        "A person can now read {count} locked {sessions}; no second person approved this. Revoke the grant here "
        "if necessary:"
    ),
    Kind.REVIEW: ("A grant to read {count} locked {sessions} has ended. Review the reads and record the result here:"),
    Kind.READING: "A person opened {count} {sessions} within an hour and is continuing. The audit log names the "
    "person:",
    Kind.ROLE: (
        "A person got a role or another right that opens content, decides or administers. The audit log names the"
        " person, the right and who confirmed it:"
    ),
}


@dataclass(frozen=True, slots=True)
class Due:
    """A due notice about a grant or an event of the log."""

    kind: Notice.Kind
    about: ContentGrant | AuditEvent

    @property
    def key(self) -> dict[str, Any]:
        """Key columns of the notice."""
        if isinstance(self.about, ContentGrant):
            return {"kind": self.kind, "grant": self.about}
        return {"kind": self.kind, "event_id": self.about.id}

    @property
    def session_count(self) -> int:
        if isinstance(self.about, ContentGrant):
            return len(self.about.sessions.all())
        return int(self.about.counters.get("sessions", 0))

    @property
    def whose(self) -> int | None:
        """Account of the requester or reader, who gets no notice. One query for an event."""
        if isinstance(self.about, ContentGrant):
            return self.about.requested_by_id
        return AuditActor.objects.filter(ref=self.about.actor_ref).values_list("user_id", flat=True).first()


def send_notices() -> int:
    """Sends due notices and returns their number; attempts have no limit.

    A failing mail server ends the round: the next notice would wait as long.
    """
    sent = 0
    for due in due_at(now()) if settings.MAIL_SERVER else ():
        people = recipients_of(due)
        if not people or not (notice := claimed(due)):
            continue
        try:
            mail_about(due, people).send()
        except OSError as problem:  # includes all exceptions of smtplib
            # Its message may contain addresses.
            logger.warning("A notice about %s was not sent: %s", due.about, type(problem).__name__)
            break
        note_sent(notice, due, people)
        sent += 1
    return sent


def due_at(at: datetime) -> Iterator[Due]:
    # Separate filters, because grants and events are referenced by different columns.
    known = Notice.objects.filter(Q(sent_at__isnull=False) | Q(try_at__gt=at))
    grants = ContentGrant.objects.with_people()
    for kind, those in (
        (Kind.REQUESTED, grants.awaiting_decision(at)),
        (Kind.OPENED_ALONE, grants.opened_alone()),
        (Kind.REVIEW, grants.awaiting_review(at)),
    ):
        for grant in those.exclude(Exists(known.filter(grant=OuterRef("pk"), kind=kind)))[:A_ROUND]:
            yield Due(kind, grant)
    for kind, event_type in OF_EVENTS.items():
        events = AuditEvent.objects.filter(type=event_type.name, at__gt=at - EVENT_IS_NEWS)
        for event in events.exclude(Exists(known.filter(event_id=OuterRef("id")))).newest_first()[:A_ROUND]:
            yield Due(kind, event)


def claimed(due: Due) -> Notice | None:
    """The notice, claimed by this process until its next attempt; None if another worker has it."""
    notice, _ = Notice.objects.get_or_create(**due.key)
    return notice if take_try(notice) else None


def mail_about(due: Due, people: list[str]) -> EmailMessage:
    count = due.session_count
    sentence = TEXTS[due.kind].format(count=count, sessions=noun_for(count, "sessions"))
    return EmailMessage(
        subject=f"memadmin: {SUBJECTS[due.kind]}",
        body=f"{sentence}\n\n{settings.CONSOLE_URL}{due.about.get_absolute_url()}\n",
        to=people,
        headers={"Auto-Submitted": "auto-generated"},
    )


@transaction.atomic
def note_sent(notice: Notice, due: Due, people: list[str]) -> None:
    counters = {"addresses": len(people)}
    if sent := SENT.get(due.kind):
        audit.record(sent, target=due.about, counters=counters)
    else:
        audit.record(audit_events.NOTICE_SENT, target=due.about, reason_code=due.kind, counters=counters)
    Notice.objects.filter(pk=notice.pk).update(sent_at=now())


def recipients_of(due: Due) -> list[str]:
    """Recipients: MEMADMIN_NOTICES_TO, else all approvers of grants except the person concerned."""
    return settings.NOTICES_TO or sorted(
        set(addresses_of_deciders().exclude(user=due.whose).values_list("email", flat=True))
    )


def addresses_of_deciders() -> QuerySet[EmailAddress]:
    return addresses_with(DECIDE)


def addresses_with(permission: str) -> QuerySet[EmailAddress]:
    """Verified primary addresses of active users with a permission."""
    found: QuerySet[EmailAddress] = EmailAddress.objects.filter(
        user__in=User.objects.with_perm(permission), verified=True, primary=True
    )
    return found


def why_no_notices() -> str:
    """Reason why no notices are sent, a sentence for approvers; empty when they are."""
    if not settings.MAIL_SERVER:
        return "No e-mail is sent about requests: MEMADMIN_MAIL_URL is not set."
    if not settings.NOTICES_TO and not addresses_of_deciders().exists():
        return (
            "No e-mail is sent about requests: no approver has an address verified by the company sign-in, and "
            "MEMADMIN_NOTICES_TO is not set."
        )
    failed = Notice.objects.filter(sent_at__isnull=True, tries__gt=1).count()
    if failed:
        return f"The mail server did not accept {counted(failed, 'notices')}; memadmin will try again."
    return ""
