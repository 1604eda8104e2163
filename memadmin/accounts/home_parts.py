"""Grants and roles on the home page."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Count, Min
from django.urls import reverse
from django.utils.timezone import localtime, now

from memadmin.accounts.approvals.kinds import kinds_for
from memadmin.accounts.audit_events import READING_NOTICED, ROLE_GRANTED
from memadmin.accounts.grants.querysets import ContentGrantQuerySet
from memadmin.accounts.grants.services import DECIDE
from memadmin.accounts.models import Approval, ContentGrant
from memadmin.accounts.role_requests.services import ADMINISTER
from memadmin.audit.models import AuditEvent
from memadmin.counting import capped, count_up_to, counted, noun_for
from memadmin.home.parts import HomeParts, Waiting, on_home, time_since, yesterday
from memadmin.web.templatetags.memadmin import zone

LOG = "audit.view_auditevent"

IS_NEWS = timedelta(days=7)
"""Time for which a granted role or unusual reading is shown; the mails about these are as old at most."""

REVIEWED_WITHIN = timedelta(days=7)
"""An ended grant without a review is late after this time."""

MOST_OWN = 3


@on_home("Own grants", "accounts.request_grant")
def own_grants(user: User) -> HomeParts:
    """The grants with which this user can read locked sessions now. Two queries at most."""
    at = now()
    own = ContentGrant.objects.asked_for_by(user).open_at(at).prefetch_related("sessions")
    return HomeParts(
        waiting=[
            Waiting(
                f"Your temporary access to {counted(len(grant.sessions.all()), 'locked sessions')} ends at"
                f" {localtime(grant.expires_at):%H:%M} {zone(grant.expires_at)}",
                grant.get_absolute_url(),
                "Open grant",
                "lock-open",
                facts="Each read is recorded.",
                age=f"{max(int((grant.expires_at - at).total_seconds() // 60), 1)} min left",
                colour="orange",
            )
            for grant in own.order_by("expires_at", "pk")[:MOST_OWN]
            if grant.expires_at
        ]
    )


@on_home("Grants", DECIDE)
def grants_to_review(user: User) -> HomeParts:
    """Grants of others that wait for a review. One query, over the grants without one."""
    entries = list[Waiting]()
    others = ContentGrant.objects.exclude(requested_by=user)
    to_review, oldest = count_and_age(others.awaiting_review(now()))
    if to_review:
        entries.append(
            Waiting(
                f"{counted(to_review, 'ended grants')} to review",
                reverse("accounts:grants"),
                "Review",
                "shield-check",
                facts="What was read, and whether it was needed.",
                age=oldest,
            )
        )
    return HomeParts(waiting=entries)


def count_and_age(grants: ContentGrantQuerySet) -> tuple[int, str]:
    """Number of grants, and when the oldest was requested, as text. One query."""
    found = grants.order_by().aggregate(count=Count("pk"), oldest=Min("requested_at"))
    return found["count"], time_since(found["oldest"]) if found["oldest"] else ""


@on_home("New rights and unusual reading", LOG, roles=("compliance", "auditor"))
def rights_and_reading(user: User) -> HomeParts:
    """Roles that were granted and unusual reading of the last days, and grants that nobody reviewed. Three queries."""
    entries = []
    log = AuditEvent.objects.filter(at__gt=now() - IS_NEWS)
    if reading := count_up_to(log.filter(type=READING_NOTICED.name)):
        entries.append(
            Waiting(
                f"{events(reading)} of unusual reading in {IS_NEWS.days} days",
                f"{reverse('audit:list')}?type={READING_NOTICED.name}",
                "View events",
                "eye-exclamation",
                facts="A person opened far more sessions within an hour than others do.",
                colour="orange",
            )
        )
    if granted := count_up_to(log.filter(type=ROLE_GRANTED.name)):
        entries.append(
            Waiting(
                f"{capped(granted)} {noun_for(granted, 'roles')} granted in {IS_NEWS.days} days",
                f"{reverse('audit:list')}?type={ROLE_GRANTED.name}",
                "Check",
                "shield-check",
                facts="Who got which right, and who confirmed it.",
            )
        )
    late = ContentGrant.objects.awaiting_review(now()).filter(expires_at__lt=now() - REVIEWED_WITHIN)
    if late_count := count_up_to(late):
        entries.append(
            Waiting(
                f"{capped(late_count)} {noun_for(late_count, 'grants')} not reviewed within"
                f" {REVIEWED_WITHIN.days} days",
                f"{reverse('audit:list')}?type=grant.opened",
                "View grants",
                "shield-off",
                colour="yellow",
            )
        )
    return HomeParts(waiting=entries)


def events(count: int) -> str:
    return f"{capped(count)} {noun_for(count, 'events')}"


@on_home("Approvals", lambda user: bool(kinds_for(user)))
def approvals(user: User) -> HomeParts:
    """Requests of others about which this user may decide, counted by kind. One query."""
    kinds = kinds_for(user)
    waiting = Approval.objects.waiting(now()).filter(kind__in=kinds).exclude(asked_by=user)
    found = waiting.values("kind").annotate(count=Count("pk"), oldest=Min("asked_at")).order_by("kind")
    return HomeParts(
        waiting=[
            Waiting(
                f"{counted(each['count'], kinds[each['kind']].waiting)} to decide",
                reverse(kinds[each["kind"]].page) + kinds[each["kind"]].query,
                "Decide",
                kinds[each["kind"]].symbol,
                facts=kinds[each["kind"]].facts,
                age=time_since(each["oldest"]),
                colour=kinds[each["kind"]].colour,
            )
            for each in found
        ]
    )


@on_home("Accounts", ADMINISTER)
def new_accounts(user: User) -> HomeParts:
    """Accounts created since yesterday. One query."""
    created = count_up_to(User.objects.filter(date_joined__gte=yesterday()))
    return HomeParts(changes=[f"{counted(created, 'accounts')} created"] if created else [])
