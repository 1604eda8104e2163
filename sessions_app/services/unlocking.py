"""Unlocking of sessions: requested by one person, decided by another, for exactly the sessions that were shown."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.models import waits
from memadmin.accounts.approvals.services import ApprovalError
from memadmin.accounts.content_access.rules import check_reading_limit
from memadmin.accounts.grants.services import DECIDE
from memadmin.accounts.mails import mail_those_with
from memadmin.batching import batched
from memadmin.counting import counted
from sessions_app import audit_events
from sessions_app.models import SessionRecord, UnlockRequest
from sessions_app.services import sessions

REQUEST = "sessions_app.mark_sensitive"

MOST_SESSIONS = 1_000
"""Maximum number of sessions of a request, whatever the reading limit is: its page shows each of them."""

AT_ONCE = 100
"""Maximum number of sessions in one event."""


class UnlockError(ApprovalError):
    """A request that is not possible; the message is a sentence for the user. Nothing was changed."""


def shown_of(request: UnlockRequest) -> dict[str, Any]:
    """Values that a decision is about. No query."""
    return {
        "sessions": sorted(map(str, request.sessions)),
        "count": len(request.sessions),
        "requested_by": request.requested_by_id,
        "reason": [request.reason, request.purpose],
    }


UNLOCKING = declare(
    ApprovalKind(
        "unlocking",
        DECIDE,
        shown_of,
        waiting="unlocking requests",
        page="sessions:unlock",
        facts="Once unlocked, everybody who reads sessions can read them. A request expires after 24 hours.",
        symbol="lock-open",
        colour="orange",
        answer_within=timedelta(hours=24),
    )
)


def request_unlocking(record_ids: Iterable[UUID], *, reason: str, purpose: str = "", by: User) -> UnlockRequest:
    """Requests to unlock those of the sessions that are locked one by one. They count toward the reading limit of the
    requester. Without a required second person (MEMADMIN_GRANTS_WITHOUT_APPROVAL) they are unlocked at once.

    Raises UnlockError and ReadingStopped.
    """
    known = SessionRecord.objects.on_record().filter(pk__in=list(record_ids), is_sensitive=True)
    records = list(known.order_by("pk"))
    if not records:
        raise UnlockError(
            "None of these sessions was locked by itself. Sessions of a locked store, and encrypted ones, stay locked."
        )
    if len(records) > MOST_SESSIONS:
        raise UnlockError(f"{counted(len(records), 'sessions')} are too many: {MOST_SESSIONS:,} at most. Add a filter.")
    wanted = [record.pk for record in records]
    # Before the transaction: a refusal is recorded.
    check_reading_limit(by, wanted)
    request = UnlockRequest(requested_by=by, sessions=wanted, reason=reason, purpose=purpose)
    with transaction.atomic():
        with approvals.asking(UNLOCKING, request, by=by, is_needed=settings.GRANT_APPROVAL, names=wanted):
            openings: list[audit.Columns] = [
                {"target": record, "subject": record.subject_id, "reason_code": purpose} for record in records
            ]
            audit.record_each(audit_events.UNLOCK_REQUESTED, openings, by=by)
            request.save(force_insert=True)
        if settings.GRANT_APPROVAL:
            transaction.on_commit(partial(mail_those_who_decide, request))
        else:
            unlock(request, by=by)
    request.refresh_from_db()
    return request


def mail_those_who_decide(request: UnlockRequest) -> None:
    mail_those_with(
        DECIDE,
        title="a request to unlock sessions",
        sentence="It was requested to unlock sessions. Another person than the requester has to decide.",
        path=reverse(UNLOCKING.page),
    )


def approve_unlocking(request: UnlockRequest, *, by: User, shown: str) -> UnlockRequest:
    """Unlocks the sessions of the request, as it was `shown`, as the second person. Raises ApprovalError."""
    with approvals.deciding(request, by=by):
        request = locked(request)
        approvals.approve(request, by=by, shown=shown)
        unlock(request, by=by)
    return request


def reject_unlocking(request: UnlockRequest, *, by: User) -> None:
    """Rejects a request of another person, or withdraws one's own. Raises ApprovalError."""
    with approvals.deciding(request, by=by):
        approvals.reject(locked(request), by=by)


def locked(request: UnlockRequest) -> UnlockRequest:
    return with_people().select_for_update(of=("self",)).get(pk=request.pk)


def unlock(request: UnlockRequest, *, by: User) -> None:
    """Unlocks those of the sessions that are still there and locked, in the transaction of the decision.

    What others requested about the same sessions is void: if one is locked again, it is locked anew.
    """
    still_locked = SessionRecord.objects.on_record().filter(pk__in=request.sessions, is_sensitive=True)
    # In the order in which all code locks several sessions.
    records = sessions.in_order(still_locked)
    count = sum(sessions.unmark_sensitive(batch, by=by) for batch in batched(records, AT_ONCE))
    UnlockRequest.objects.filter(pk=request.pk).update(unlocked_at=Now(), unlocked_count=count)
    unlocked = [record.pk for record in records]
    for other in waiting().filter(sessions__overlap=unlocked).exclude(pk=request.pk):
        approvals.make_void(other, by=by)
    request.refresh_from_db()


def waiting() -> QuerySet[UnlockRequest]:
    """Requests without a decision, the oldest first."""
    return with_people().filter(waits(now(), "approval__")).order_by("requested_at", "pk")


def ended() -> QuerySet[UnlockRequest]:
    """Decided and expired requests, the newest first."""
    return with_people().exclude(waits(now(), "approval__")).order_by("-requested_at", "-pk")


def with_people() -> QuerySet[UnlockRequest]:
    people = ("requested_by", "approval__asked_by", "approval__decided_by")
    return UnlockRequest.objects.select_related(*people).defer(*(f"{person}__password" for person in people))
