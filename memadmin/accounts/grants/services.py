"""Services of grants: request, approve, refuse, end and review temporary access to locked sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models, transaction
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events
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
class Steps:
    """Actions of a user on a grant; the services check the same functions."""

    decide: bool
    review: bool
    ending: GrantEnding | None


class GrantError(Exception):
    """An action on a grant that is not possible; the message is a sentence for the user."""


class NotAllowed(GrantError):
    """The rules forbid the action: own grant, or no right to decide."""


class GrantAlreadyDecided(GrantError):
    """Another user decided first, or the grant has ended; nothing was changed."""

    def __init__(self, grant: ContentGrant) -> None:
        self.grant = grant
        decided = (
            f"{grant.decided_by} has already decided on this request" if grant.decided_by else "This request is closed"
        )
        super().__init__(f"{decided}. Your decision was not saved.")


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
    audit.record(
        audit_events.GRANT_REQUESTED,
        by=by,
        target=grant,
        shown=wanted,
        reason_code=reason,
        counters={"sessions": len(wanted), "minutes": minutes},
        details={"ticket": ticket, "explanation": explanation},
    )
    grant.save(force_insert=True)
    GrantedSession.objects.bulk_create(GrantedSession(grant=grant, record_id=record_id) for record_id in wanted)
    if not settings.GRANT_APPROVAL:
        open_for(grant, ["opened_at", "expires_at"], by=by, reason_code="no_approval_needed")
    grant.refresh_from_db()
    return grant


@transaction.atomic
def approve_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Opens the grant from now on for the requested minutes. Raises NotAllowed or GrantAlreadyDecided."""
    grant = locked_for_decision(grant, by)
    grant.decided_by, grant.decided_at = by, now()
    open_for(grant, ["decided_by", "decided_at", "opened_at", "expires_at"], by=by, reason_code="approved")
    return grant


@transaction.atomic
def refuse_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Raises NotAllowed or GrantAlreadyDecided."""
    grant = locked_for_decision(grant, by)
    audit.record(audit_events.GRANT_REFUSED, by=by, target=grant)
    grant.decided_by, grant.decided_at = by, now()
    grant.save(update_fields=["decided_by", "decided_at"])
    return grant


@transaction.atomic
def end_grant(grant: ContentGrant, *, by: User) -> ContentGrant:
    """Ends a grant early: given back or withdrawn by the requester, or revoked by an approver.

    Ending an ended grant changes nothing.
    """
    grant = ContentGrant.objects.select_for_update().get(pk=grant.pk)
    if by.pk != grant.requested_by_id and not by.has_perm(DECIDE):
        raise NotAllowed("This grant belongs to another user.")
    if ending := ending_by(grant, by):
        audit.record(audit_events.GRANT_ENDED, by=by, target=grant, reason_code=ending.value)
        grant.ended_at = now()
        grant.save(update_fields=["ended_at"])
    return grant


@transaction.atomic
def review_grant(grant: ContentGrant, *, by: User, note: str) -> ContentGrant:
    """Records the review of what was read under an ended grant. Raises NotAllowed or GrantAlreadyDecided."""
    grant = ContentGrant.objects.select_for_update(of=("self",)).get(pk=grant.pk)
    require_other_person(grant, by)
    if not awaits_review(grant):
        raise GrantAlreadyDecided(grant)
    audit.record(audit_events.GRANT_REVIEWED, by=by, target=grant, details={"note": note})
    grant.reviewed_by, grant.reviewed_at, grant.review_note = by, now(), note
    grant.save(update_fields=["reviewed_by", "reviewed_at", "review_note"])
    return grant


def locked_for_decision(grant: ContentGrant, by: User) -> ContentGrant:
    grant = ContentGrant.objects.select_for_update(of=("self",)).get(pk=grant.pk)
    require_other_person(grant, by)
    if not awaits_decision(grant):
        raise GrantAlreadyDecided(grant)
    return grant


def steps_for(grant: ContentGrant, by: User) -> Steps:
    """Actions available to a user. Two queries for approvers, none for the requester."""
    try:
        require_other_person(grant, by)
    except NotAllowed:
        decides = False
    else:
        decides = True
    ending = ending_by(grant, by)
    if ending == GrantEnding.TAKEN_BACK and awaits_decision(grant):
        ending = None  # It is refused instead, which is more specific.
    return Steps(decide=decides and awaits_decision(grant), review=decides and awaits_review(grant), ending=ending)


def awaits_decision(grant: ContentGrant) -> bool:
    return grant.state_at(now()) == ContentGrant.State.WAITING


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


def require_other_person(grant: ContentGrant, by: User) -> None:
    """Raises NotAllowed for the requester, under any account."""
    if not by.is_active or not by.has_perm(DECIDE):
        raise NotAllowed("Your role does not allow deciding on grants.")
    if is_same_person(by, grant.requested_by):
        raise NotAllowed("You requested this yourself. Another person has to decide.")


def open_for(grant: ContentGrant, columns: list[str], *, by: User, reason_code: str) -> None:
    listed = list(grant.sessions.values_list("record_id", flat=True))
    counters = {"sessions": len(listed), "minutes": grant.minutes}
    audit.record(
        audit_events.GRANT_OPENED, by=by, target=grant, shown=listed, reason_code=reason_code, counters=counters
    )
    grant.opened_at = now()
    grant.expires_at = grant.opened_at + timedelta(minutes=grant.minutes)
    grant.save(update_fields=columns)


def open_grants(user: User, at: datetime | None = None) -> list[ContentGrant]:
    """The active grants of a user, the next to end first.

    The approver is checked at each use: a grant ends when its approver loses the right to decide. Evaluated on every
    page: one query without active grants, one more for the sessions and one for each approver.
    """
    grants = ContentGrant.objects.asked_for_by(user).open_at(at or now()).prefetch_related("sessions")
    return [grant for grant in grants.order_by("expires_at", "id") if is_approval_valid(grant)]


def is_approval_valid(grant: ContentGrant) -> bool:
    """Whether its approver may still decide; without an approver, whether none is needed."""
    if grant.decided_by is None:
        return not settings.GRANT_APPROVAL
    return grant.decided_by.is_active and grant.decided_by.has_perm(DECIDE)


def waiting_for(user: User, record_id: UUID) -> ContentGrant | None:
    """The user's oldest request about a session without a decision."""
    return ContentGrant.objects.asked_for_by(user).about(record_id).awaiting_decision(now()).first()


def granted_records(user: User) -> set[UUID]:
    """Locked sessions that the user may read now."""
    return {session.record_id for grant in open_grants(user) for session in grant.sessions.all()}
