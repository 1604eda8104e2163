"""E-mail to those who decide on grants: one waits, one opened without a second person, one is to be reviewed.

Which notices are due follows from the grants themselves, and `GrantNotice` remembers those that were sent. So a worker
that dies and a mail server that is away lose nothing, and nobody who asks, decides or reads waits for either. A notice
says of how many sessions and where to look; never who, whom or why, since mail lies around.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audited
from memadmin.accounts.grants.verbs import DECIDE
from memadmin.accounts.models import ContentGrant, GrantNotice

logger = logging.getLogger("memadmin.notices")

A_ROUND = 100
"""How many notices of a kind are looked at in one go."""

LONGEST_WAIT_MINUTES = 60
"""How far the tries move apart while mail does not go out; they never end."""

Kind = GrantNotice.Kind

SUBJECTS = {
    Kind.REQUESTED: "A grant waits for a second person",
    Kind.OPENED_ALONE: "A grant opened without a second person",
    Kind.REVIEW: "A grant is over and waits for review",
}
TEXTS = {
    Kind.REQUESTED: "Somebody asks for leave to read {sessions}. Decide here:",
    Kind.OPENED_ALONE: "Somebody may read {sessions}; no second person decided on it. Take it back, if need be, here:",
    Kind.REVIEW: "A grant to read {sessions} is over. Look at what was read, and say what you found, here:",
}


def send_notices() -> int:
    """Sends what is due, and returns how many. A mail server that fails ends the round: the next would wait as long."""
    sent = 0
    for grant, kind in due_at(now()) if settings.MAIL_SERVER else ():
        people = recipients_of(grant)
        if not people or not (notice := claimed(grant, kind)):
            continue
        try:
            mail_about(grant, kind, people).send()
        except OSError as problem:  # all that smtplib raises is one of these, too
            # Its words may hold addresses.
            logger.warning("A notice about %s was not sent: %s", grant, type(problem).__name__)
            break
        note_sent(notice, people)
        sent += 1
    return sent


def due_at(at: datetime) -> Iterator[tuple[ContentGrant, GrantNotice.Kind]]:
    grants = ContentGrant.objects.with_people()
    for kind, those in (
        (Kind.REQUESTED, grants.awaiting_decision(at)),
        (Kind.OPENED_ALONE, grants.opened_alone()),
        (Kind.REVIEW, grants.awaiting_review(at)),
    ):
        told = GrantNotice.objects.filter(grant=OuterRef("pk"), kind=kind)
        for grant in those.exclude(Exists(told.filter(Q(sent_at__isnull=False) | Q(try_at__gt=at))))[:A_ROUND]:
            yield grant, kind


def claimed(grant: ContentGrant, kind: GrantNotice.Kind) -> GrantNotice | None:
    """This notice for us alone, until its next try; none where another worker has it or was faster."""
    notice, _ = GrantNotice.objects.get_or_create(grant=grant, kind=kind)
    wait = timedelta(minutes=min(2**notice.tries, LONGEST_WAIT_MINUTES))
    at = now()
    ours = GrantNotice.objects.filter(pk=notice.pk, tries=notice.tries, sent_at__isnull=True, try_at__lte=at)
    return notice if ours.update(tries=F("tries") + 1, try_at=at + wait) else None


def mail_about(grant: ContentGrant, kind: GrantNotice.Kind, people: list[str]) -> EmailMessage:
    count = len(grant.sessions.all())
    told = TEXTS[kind].format(sessions="1 locked session" if count == 1 else f"{count} locked sessions")
    return EmailMessage(
        subject=f"memadmin: {SUBJECTS[kind]}",
        body=f"{told}\n\n{settings.CONSOLE_URL}{grant.get_absolute_url()}\n",
        to=people,
        headers={"Auto-Submitted": "auto-generated"},
    )


@transaction.atomic
def note_sent(notice: GrantNotice, people: list[str]) -> None:
    audit.record(audited.NOTICE_SENT, target=notice.grant, reason_code=notice.kind, counters={"addresses": len(people)})
    GrantNotice.objects.filter(pk=notice.pk).update(sent_at=now())


def recipients_of(grant: ContentGrant) -> list[str]:
    """Who is told: whom MEMADMIN_NOTICES_TO names, else everybody who may decide but who asked. One query."""
    return settings.NOTICES_TO or sorted(set(addresses_of_deciders(but=grant.requested_by)))


def addresses_of_deciders(*, but: User | None = None) -> list[str]:
    deciders = User.objects.with_perm(DECIDE)
    addresses = EmailAddress.objects.filter(user__in=deciders, verified=True, primary=True)
    return list((addresses.exclude(user=but) if but else addresses).values_list("email", flat=True))


def why_nobody_is_told() -> str:
    """A sentence for those who decide; empty when notices go out."""
    if not settings.MAIL_SERVER:
        return "Nobody is told of requests by e-mail: MEMADMIN_MAIL_URL is not set."
    if not settings.NOTICES_TO and not addresses_of_deciders():
        return (
            "Nobody is told of requests by e-mail: no address of somebody who may decide is verified by the company's"
            " sign-in, and MEMADMIN_NOTICES_TO is not set."
        )
    failed = GrantNotice.objects.filter(sent_at__isnull=True, tries__gt=1).count()
    if failed:
        return f"The mail server did not take {failed} {'notice' if failed == 1 else 'notices'}; it is tried again."
    return ""
