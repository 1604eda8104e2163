"""Services of grants: request, approve, refuse, end and review temporary access to locked sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.services import AlreadyDecided, ApprovalError, NotAllowed
from memadmin.accounts.models import ContentGrant, GrantedSession
from memadmin.accounts.same_person import is_same_person

DECIDE = "accounts.decide_grant"
REQUEST = "accounts.request_grant"

MINUTES = (15, 30, 60)
SESSIONS_A_GRANT = 50
"""Maximum of sessions in a grant: larger lists would bypass single requests."""


class GrantEnding(models.TextChoices):
    """Ways to end a grant early; the label is that of the button."""

    GIVEN_BACK = "given_back", "End access now"
    WITHDRAWN = "withdrawn", "Withdraw request"
    TAKEN_BACK = "taken_back", "Revoke grant"


@dataclass(frozen=True, slots=True)
class GrantSteps:
    """Actions of a user on a grant; the services check the same functions."""

    approval: approvals.Steps
    review: bool
    ending: GrantEnding | None


class GrantError(ApprovalError):
    """An action on a grant that is not possible; the message is a sentence for the user."""


def shown_of(grant: ContentGrant) -> dict[str, Any]:
    """Values that a decision is about. One query, or none after `with_people`."""
    return {
        "reader": grant.requested_by_id,
        "sessions": sorted(str(session.record_id) for session in grant.sessions.all()),
        "minutes": grant.minutes,
        "reason": [grant.reason, grant.ticket, grant.explanation],
    }


GRANT = declare(
    ApprovalKind(
        "grant",
        DECIDE,
        shown_of,
        waiting="access requests",
        page="accounts:grants",
        facts="For locked sessions. Without a decision a request expires after 24 hours.",
        symbol="lock-open",
        colour="orange",
        answer_within=timedelta(hours=24),
    )
)


@transaction.atomic
def request_grant(
    *, by: User, record_ids: Iterable[UUID], reason: str, ticket: str, explanation: str = "", minutes: int = MINUTES[0]
) -> ContentGrant:
    """Requests access to locked sessions. Opens at once if no second person is required (MEMADMIN_GRANT_APPROVAL).

    Raises GrantError for no, or too many, sessions.
    """
    wanted = sorted(set(record_ids))
    if not wanted:
        raise GrantError("No session was selected. A grant needs a list of sessions.")
    if len(wanted) > SESSIONS_A_GRANT:
        raise GrantError(
            f"A grant covers at most {SESSIONS_A_GRANT} sessions; you selected {len(wanted)}. Select fewer sessions."
        )
    if minutes not in MINUTES:
        raise GrantError("A grant lasts 15, 30 or 60 minutes.")
    grant = ContentGrant(requested_by=by, reason=reason, ticket=ticket, explanation=explanation, minutes=minutes)
    details, is_needed = {"ticket": ticket, "explanation": explanation}, settings.GRANT_APPROVAL
    with approvals.asking(GRANT, grant, by=by, is_needed=is_needed, names=wanted, reason_code=reason, details=details):
        grant.save(force_insert=True)
        GrantedSession.objects.bulk_create(GrantedSession(grant=grant, record_id=record_id) for record_id in wanted)
    if not is_needed:
        open_for(grant, by=by, reason_code="no_approval_needed")
    grant.refresh_from_db()
    return grant


def approve_grant(grant: ContentGrant, *, by: User, shown: str) -> ContentGrant:
    """Opens the grant, as it was `shown`, from now on for the requested minutes. Raises ApprovalError."""
    with approvals.deciding(grant, by=by):
        grant = locked(grant)
        approvals.approve(grant, by=by, shown=shown)
        open_for(grant, by=by, reason_code="approved")
    return grant


def refuse_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Raises ApprovalError."""
    with approvals.deciding(grant, by=by):
        grant = locked(grant)
        approvals.reject(grant, by=by)
    return grant


def end_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Ends a grant early: given back or withdrawn by the requester, revoked or rejected by an approver.

    Ending an ended grant changes nothing. Raises ApprovalError.
    """
    with approvals.deciding(grant, by=by):
        grant = locked(grant)
        if by.pk != grant.requested_by_id and not by.has_perm(DECIDE):
            raise NotAllowed("This grant belongs to another user.")
        ending = ending_by(grant, by)
        if grant.opened_at is None and ending:
            approvals.reject(grant, by=by)
        elif ending:
            audit.record(audit_events.GRANT_ENDED, by=by, target=grant, reason_code=ending.value)
            grant.ended_at = now()
            grant.save(update_fields=["ended_at"])
    return grant


@transaction.atomic
def review_grant(grant: ContentGrant, *, by: User, note: str) -> ContentGrant:
    """Records the review of what was read under an ended grant. Raises ApprovalError."""
    grant = locked(grant)
    require_reviewer(grant, by)
    if not awaits_review(grant):
        raise AlreadyDecided(grant.approval)
    audit.record(audit_events.GRANT_REVIEWED, by=by, target=grant, details={"note": note})
    grant.reviewed_by, grant.reviewed_at, grant.review_note = by, now(), note
    grant.save(update_fields=["reviewed_by", "reviewed_at", "review_note"])
    return grant


def locked(grant: ContentGrant) -> ContentGrant:
    return ContentGrant.objects.with_people().select_for_update(of=("self",)).get(pk=grant.pk)


def steps_for(grant: ContentGrant, by: User) -> GrantSteps:
    """Actions available to a user. Two queries for approvers, none for the requester."""
    ending = ending_by(grant, by)
    if grant.opened_at is None:
        return GrantSteps(
            approvals.steps_for(grant, by), review=False, ending=ending if by.pk == grant.requested_by_id else None
        )
    try:
        require_reviewer(grant, by)
    except NotAllowed:
        return GrantSteps(approvals.Steps(), review=False, ending=ending)
    return GrantSteps(approvals.Steps(), review=awaits_review(grant), ending=ending)


def awaits_review(grant: ContentGrant) -> bool:
    return grant.state_at(now()) == ContentGrant.State.OVER and grant.opened_at is not None


def ending_by(grant: ContentGrant, by: User) -> GrantEnding | None:
    """How a user would end a grant; None if it has ended or they may not end it."""
    state = grant.state_at(now())
    if state not in (ContentGrant.State.OPEN, ContentGrant.State.WAITING):
        return None
    if by.pk == grant.requested_by_id:
        return GrantEnding.GIVEN_BACK if state == ContentGrant.State.OPEN else GrantEnding.WITHDRAWN
    return GrantEnding.TAKEN_BACK if by.has_perm(DECIDE) else None


def require_reviewer(grant: ContentGrant, by: User) -> None:
    """Raises NotAllowed for the requester, under any account."""
    approvals.require_right(GRANT, by)
    if is_same_person(by, grant.requested_by):
        raise NotAllowed("You requested this yourself. Another person has to review it.")


def open_for(grant: ContentGrant, *, by: User, reason_code: str) -> None:
    listed = list(grant.sessions.values_list("record_id", flat=True))
    counters = {"sessions": len(listed), "minutes": grant.minutes}
    audit.record(
        audit_events.GRANT_OPENED, by=by, target=grant, shown=listed, reason_code=reason_code, counters=counters
    )
    grant.opened_at = now()
    grant.expires_at = grant.opened_at + timedelta(minutes=grant.minutes)
    grant.save(update_fields=["opened_at", "expires_at"])


def open_grants(user: User, at: datetime | None = None) -> list[ContentGrant]:
    """The active grants of a user, the next to end first.

    The approver is checked at each use: a grant ends when its approver loses the right to decide. Evaluated on every
    page: one query without active grants, one more for the sessions and one for each approver.
    """
    grants = ContentGrant.objects.asked_for_by(user).open_at(at or now()).with_people()
    return [grant for grant in grants.order_by("expires_at", "id") if is_approval_valid(grant)]


def is_approval_valid(grant: ContentGrant) -> bool:
    """Whether it is as approved, and its approver may still decide; without an approver, whether none is needed."""
    if not approvals.is_as_approved(GRANT, grant):
        return False
    approver = grant.approval.decided_by if grant.approval else None
    return approver.is_active and approver.has_perm(DECIDE) if approver else not settings.GRANT_APPROVAL


def waiting_for(user: User, record_id: UUID) -> ContentGrant | None:
    """The user's oldest request about a session without a decision."""
    return ContentGrant.objects.asked_for_by(user).about(record_id).awaiting_decision(now()).first()


def granted_records(user: User) -> set[UUID]:
    """Locked sessions that the user may read now."""
    return {session.record_id for grant in open_grants(user) for session in grant.sessions.all()}
