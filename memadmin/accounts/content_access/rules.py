"""Checks before content is shown: purpose and reading limit. The middleware handles their exceptions."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.purposes import Purpose
from memadmin.audit.log.ids import ref_of
from memadmin.audit.log.types import openings
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent
from memadmin.counting import counted

KEPT = "purpose"
"""Session key of the purpose: its code, the ticket, and its end in seconds since 1970."""

REMEMBERED = 10_000

_opened: dict[tuple[int, UUID], float] = {}
"""Time at which this process last allowed a user to open a session; repeated reads are not counted again."""


class PurposeMissing(Exception):
    """The user must state a purpose first."""


class ReadingStopped(Exception):
    """The user would exceed the hourly limit of opened sessions; nothing was shown."""

    def __init__(self, opened: int, wanted: int, seconds: int) -> None:
        """`seconds` until so many can be opened; 0 if that is more than the limit."""
        self.seconds = seconds
        limit, minutes = settings.READ_LIMIT, -(-seconds // 60)
        if wanted == 1:
            sentence = (
                f"You have opened, or asked to unlock, {limit} sessions within an hour, the maximum per person. "
                f"Compliance staff can see this. The next one is possible in {counted(minutes, 'minutes')}."
            )
        elif seconds:
            sentence = (
                f"You have opened, or asked to unlock, {counted(opened, 'sessions')} within an hour, and these are "
                f"{wanted} more. The maximum per person is {limit}. So many are possible in "
                f"{counted(minutes, 'minutes')}."
            )
        else:
            sentence = f"These are {wanted} sessions. The maximum per person is {limit} within an hour. Take fewer."
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class Stated:
    """A stated purpose and its end."""

    code: str
    ticket: str
    until: float

    @property
    def label(self) -> str:
        return str(Purpose(self.code).label)


def stated_in(request: HttpRequest) -> Stated | None:
    """The valid purpose of this session, if any. No query beyond the session's own."""
    code, ticket, until = request.session.get(KEPT, ("", "", 0))
    return Stated(code, ticket, until) if code in Purpose.values and time.time() < until else None


def state_purpose(request: HttpRequest, code: str, ticket: str) -> None:
    """Stores the purpose in the request's session for MEMADMIN_PURPOSE_HOURS; the ticket is in the event's details."""
    audit.record_alone(audit_events.PURPOSE_STATED, reason_code=code, details={"ticket": ticket} if ticket else None)
    request.session[KEPT] = [code, ticket, time.time() + settings.PURPOSE_LIMIT.total_seconds()]


def purpose_of(request: HttpRequest) -> str:
    """Code of the purpose for showing content; empty where none is required. Raises PurposeMissing."""
    if stated := stated_in(request):
        return stated.code
    if settings.PURPOSE_REQUIRED:
        raise PurposeMissing
    return ""


def opening(request: HttpRequest, record_id: UUID) -> str:
    """Code of the purpose, as above, before a session is opened. Also raises ReadingStopped.

    Sessions are counted in the log, which all processes share, each once an hour; concurrent requests may exceed the
    limit by their number. One query for a session that is new to this process.
    """
    code = purpose_of(request)
    person = cast(User, request.user)
    key, at = (person.pk, record_id), time.monotonic()
    if not settings.READ_LIMIT or at - _opened.get(key, -settings.READ_WINDOW.total_seconds()) < (
        settings.READ_WINDOW.total_seconds()
    ):
        return code
    check_reading_limit(person, [record_id])
    if len(_opened) >= REMEMBERED:
        _opened.clear()
    _opened[key] = at
    return code


def check_reading_limit(person: User, record_ids: Collection[UUID], *, is_one: bool = False) -> None:
    """Raises ReadingStopped if these sessions together would exceed READ_LIMIT; records a notice from READ_NOTICE on.

    With `is_one` they cannot be divided: more than the limit may be opened together. One or two queries.
    """
    limit: int = settings.READ_LIMIT
    if not limit:
        return
    recent = opened_lately(person)
    wanted = len(set(record_ids) - {ref for ref, _ in recent})
    if not wanted:
        return
    if len(recent) + wanted > limit and not (is_one and len(set(record_ids)) > limit):
        # So many can be opened when those counted before are out of the window, all but the latest.
        free_in = recent[limit - wanted][1] + settings.READ_WINDOW - now() if wanted <= limit else timedelta(0)
        counters = {"sessions": len(recent)}
        audit.record_alone(audit_events.READING_STOPPED, target=person, outcome="denied", counters=counters)
        raise ReadingStopped(len(recent), wanted, max(1, round(free_in.total_seconds())) if free_in else 0)
    if len(recent) + wanted >= settings.READ_NOTICE and not was_noticed(person):
        audit.record_alone(audit_events.READING_NOTICED, target=person, counters={"sessions": len(recent) + wanted})


def opened_lately(person: User) -> list[tuple[UUID, Any]]:
    """Sessions opened by a user in the last hour, with the time of the last opening, the latest first. One query."""
    actors = AuditActor.objects.filter(kind=ActorKind.PERSON, user_id=person.pk).values("ref")
    events = AuditEvent.objects.filter(actor_ref__in=actors, type__in=openings(), at__gt=Now() - settings.READ_WINDOW)
    opened = events.filter(object_ref__isnull=False, outcome="succeeded").values_list("object_ref")
    return list(opened.annotate(last=Max("at")).order_by("-last")[: settings.READ_LIMIT])


def was_noticed(person: User) -> bool:
    notices = AuditEvent.objects.filter(type=audit_events.READING_NOTICED.name, at__gt=Now() - settings.READ_WINDOW)
    return notices.filter(object_ref=ref_of(person)).exists()
