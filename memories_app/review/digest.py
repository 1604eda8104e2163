"""The daily digest of the review queue for reviewers, by e-mail and by a signed request to a receiver.

It contains numbers and the address of the queue, no names and no text of memories, because mail and chats are not
confidential. `Digest` stores what was sent: two workers send it once, and an unavailable server is retried until the
end of the day. Only the settings can name the receiver, no request and no row of the database.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import logging
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Count, Min, Q, QuerySet
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.web.http_post import post
from memadmin.web.retry import take_try
from memories_app import audit_events
from memories_app.models import Digest, Memory, NoDigest
from memories_app.review.proposal_expiry import WARNED_BEFORE, count_lapsed, lapsing
from memories_app.review.rules import samples_to_see

logger = logging.getLogger("memadmin.digest")

REVIEW = "memories_app.review_memory"

TIMEOUT_SECONDS = 5.0

KEPT = timedelta(days=30)
"""Retention of rows about sent digests."""

Way = Digest.Way


class NotTaken(Exception):
    """The receiver did not accept it; the message has its response."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of the queue; `expired` is of the last day."""

    waiting: int
    late: int
    oldest_hours: int
    expiring: int
    expired: int
    samples: int

    @property
    def is_news(self) -> bool:
        return bool(self.waiting or self.expired or self.samples)


def current_figures() -> Figures:
    """Exact figures, because they are needed once a day. Four queries."""
    at = now()
    waiting = Memory.objects.awaiting_review().not_snoozed()
    counted = waiting.order_by().aggregate(
        waiting=Count("pk"),
        late=Count("pk", filter=Q(awaiting_since__lt=at - settings.REVIEW_WITHIN)),
        oldest=Min("awaiting_since"),
    )
    oldest = int((at - counted["oldest"]).total_seconds() // 3600) if counted["oldest"] else 0
    return Figures(
        counted["waiting"],
        counted["late"],
        oldest,
        lapsing(within=WARNED_BEFORE).count(),
        count_lapsed(within=timedelta(days=1)),
        samples_to_see().count(),
    )


def send_digest() -> int:
    """Sends today's digest on the channels where it is due, and returns their number."""
    at = now()
    ways = [way for way in Way if is_on(way)]
    if not ways or at.hour < settings.DIGEST_HOUR:
        return 0
    done = set(Digest.objects.filter(on=at.date(), sent_at__isnull=False).values_list("way", flat=True))
    if done.issuperset(ways):
        return 0
    figures = current_figures()
    Digest.objects.filter(on__lt=at.date() - KEPT).delete()
    return sum(send(way, figures, at) for way in ways if way not in done)


def is_on(way: Digest.Way) -> bool:
    return bool(settings.MAIL_SERVER if way == Way.MAIL else settings.DIGEST_URL)


def send(way: Digest.Way, figures: Figures, at: datetime) -> bool:
    """Whether it was sent. Empty queues are not sent by mail, but to the receiver."""
    people = recipients() if way == Way.MAIL else []
    if way == Way.MAIL and not (people and figures.is_news):
        return False
    digest, _ = Digest.objects.get_or_create(on=at.date(), way=way)
    if not take_try(digest):
        return False
    try:
        if way == Way.MAIL:
            mail_with(figures, people).send()
        else:
            deliver(figures, f"digest-{digest.pk}", at)
    except (OSError, http.client.HTTPException, NotTaken) as problem:
        # Messages of mail errors may contain addresses and are dropped.
        reason = str(problem) if isinstance(problem, NotTaken) else type(problem).__name__
        logger.warning("The digest of the review queue was not sent by %s: %s", digest.get_way_display(), reason)
        return False
    note_sent(digest, figures, people)
    return True


@transaction.atomic
def note_sent(digest: Digest, figures: Figures, people: list[str]) -> None:
    counters = {"waiting": figures.waiting, "late": figures.late, "expiring": figures.expiring}
    audit.record(audit_events.DIGEST_SENT, reason_code=digest.way, counters=counters | {"addresses": len(people)})
    Digest.objects.filter(pk=digest.pk).update(sent_at=now())


def mail_with(figures: Figures, people: list[str]) -> EmailMessage:
    lines = [
        f"Waiting: {figures.waiting}",
        f"Late, waiting for more than {settings.REVIEW_WITHIN.total_seconds() / 3600:g} hours: {figures.late}",
        f"The oldest has been waiting for {figures.oldest_hours} hours." if figures.waiting else "",
        f"Expire unreviewed within {WARNED_BEFORE.days} days: {figures.expiring}" if figures.expiring else "",
        f"Expired unreviewed since yesterday: {figures.expired}" if figures.expired else "",
        f"Rule samples to check: {figures.samples}" if figures.samples else "",
    ]
    late = f", {figures.late} of them late" if figures.late else ""
    proposals = "proposal waits" if figures.waiting == 1 else "proposals wait"
    return EmailMessage(
        subject=f"memadmin: {figures.waiting} {proposals} for review{late}",
        body="\n".join(
            [
                *filter(None, lines),
                "",
                f"{settings.CONSOLE_URL}{reverse('reviews:list')}",
                "",
                f"To unsubscribe from this mail: {settings.CONSOLE_URL}{reverse('reviews:health')}",
                "",
            ]
        ),
        to=people,
        headers={"Auto-Submitted": "auto-generated"},
    )


def deliver(figures: Figures, message_id: str, at: datetime) -> None:
    """Posts the figures in the format of Standard Webhooks (standardwebhooks.com). Raises OSError, HTTPException and
    NotTaken."""
    link = {"url": f"{settings.CONSOLE_URL}{reverse('reviews:list')}"} if settings.CONSOLE_URL else {}
    body = json.dumps({"type": "reviews.digest", "timestamp": at.isoformat(), "data": asdict(figures) | link}).encode()
    seconds = str(int(at.timestamp()))
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "memadmin",
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{signature(settings.DIGEST_SECRET, message_id, seconds, body)}",
    }
    status, _ = post(settings.DIGEST_URL, body, headers, timeout_seconds=TIMEOUT_SECONDS)
    if not 200 <= status < 300:
        redirect = ", a redirect; redirects are not followed" if 300 <= status < 400 else ""
        raise NotTaken(f"{urlsplit(settings.DIGEST_URL).hostname} answered {status}{redirect}.")


def signature(key: bytes, message_id: str, seconds: str, body: bytes) -> str:
    signed = b".".join([message_id.encode(), seconds.encode(), body])
    return base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def recipients() -> list[str]:
    """MEMADMIN_DIGEST_TO, else all subscribed reviewers."""
    return settings.DIGEST_TO or sorted(set(addresses_of_reviewers().values_list("email", flat=True)))


def addresses_of_reviewers() -> QuerySet[EmailAddress]:
    found: QuerySet[EmailAddress] = EmailAddress.objects.filter(
        user__in=User.objects.with_perm(REVIEW), verified=True, primary=True
    )
    return found.exclude(user__in=NoDigest.objects.values("person"))


def want_digest(person: User, *, wanted: bool) -> None:
    if wanted:
        NoDigest.objects.filter(person=person).delete()
    else:
        NoDigest.objects.get_or_create(person=person)


@dataclass(frozen=True, slots=True)
class Setup:
    """Recipients of the digest. `wanted` is None if a person cannot choose: no mail is sent, or only to others."""

    sentences: list[str]
    problems: list[str]
    wanted: bool | None


def setup_for(person: User) -> Setup:
    """The set-up as sentences, for the page of review health. At most four queries."""
    sentences, problems, wanted = list[str](), list[str](), None
    at = f"Daily from {settings.DIGEST_HOUR:02}:00 UTC"
    if not settings.MAIL_SERVER:
        problems.append("No e-mail is sent: MEMADMIN_MAIL_URL is not set.")
    elif count := len(recipients()):
        sentences.append(f"{at} by e-mail to {count} {'address' if count == 1 else 'addresses'}.")
    else:
        problems.append("No e-mail is sent: no subscribed reviewer has an address verified by the company sign-in.")
    if settings.MAIL_SERVER and not settings.DIGEST_TO:
        wanted = not NoDigest.objects.filter(person=person).exists()
    if settings.DIGEST_URL:
        sentences.append(f"{at} to {urlsplit(settings.DIGEST_URL).hostname}.")
    failing = Digest.objects.filter(on=now().date(), sent_at__isnull=True, tries__gt=1)
    problems += [
        f"Today's digest was not accepted by {each.get_way_display()} yet; memadmin tries again." for each in failing
    ]
    return Setup(sentences, problems, wanted)
