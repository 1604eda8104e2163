"""Locked sessions in copies: which a subject has, and the approval of a second person to include them.

Without an approval a copy is made without these sessions, and names them. One approval is for one copy, and for the
sessions that its page counted: what is locked or attached later is left out, and named, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q

from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.approvals.services import is_approved_as
from memadmin.accounts.grants.services import DECIDE
from memadmin.erasure.approving import is_about, own_request
from memadmin.erasure.models import AccessCopy, SubjectRequest
from memadmin.erasure.scope import SubjectScope, scope_of
from sessions_app.models.querysets import SessionRecordQuerySet

KEPT = "locked"
"""Member of a case's preview: what was counted when the approval was requested."""


def needs_grant_q() -> Q:
    """Condition of sessions that staff reads with a grant alone."""
    return SessionRecordQuerySet.locked_q() | Q(is_encrypted=True)


def locked_records(scope: SubjectScope) -> SessionRecordQuerySet:
    return scope.records().on_record().filter(needs_grant_q())


def locked_now(request: SubjectRequest) -> dict[str, Any]:
    """The locked sessions of the subject and their number in each store, as a copy would have them now. Two queries,
    or three.
    """
    scope = scope_of(request.subject, [])
    found = list(locked_records(scope).values_list("pk", "store__name"))
    return {
        "subjects": sorted(map(str, scope.group)),
        "sessions": sorted(str(record_id) for record_id, _ in found),
        "stores": dict(sorted(Counter(name for _, name in found).items())),
    }


def locked_counts(request: SubjectRequest) -> list[tuple[str, int]]:
    """Names of stores with the number of the subject's locked sessions. Two queries, or three."""
    found = locked_records(scope_of(request.subject, [])).order_by("store__name").values("store__name")
    return list(found.annotate(count=Count("pk")).values_list("store__name", "count"))


def shown_of(request: SubjectRequest) -> dict[str, Any]:
    """Values that a decision is about: the sessions as they are now."""
    return with_purpose(request, locked_now(request))


def as_asked(request: SubjectRequest) -> dict[str, Any]:
    """The same as they were when the approval was requested. No query."""
    return with_purpose(request, request.preview.get(KEPT, {}))


def with_purpose(request: SubjectRequest, sessions: Mapping[str, Any]) -> dict[str, Any]:
    return {"subject": str(request.subject_id), "purpose": request.preview.get("purpose", ""), **sessions}


COPY = declare(
    ApprovalKind(
        "access_copy",
        DECIDE,
        shown_of,
        waiting="copy requests",
        page="erasure:requests",
        facts="Copies of a person's data with locked sessions.",
        symbol="lock-open",
        colour="orange",
        refusal=lambda request, user: own_request() if is_about(request, user) else "",
    )
)


def approved_sessions(copy: AccessCopy) -> frozenset[UUID]:
    """Ids of the locked sessions that a second person approved for this copy; none without a valid approval.

    `copy` comes with its request and the request's approval. No query.
    """
    request = copy.request
    approval = request.approval
    if copy.approval_id is None or approval is None or approval.pk != copy.approval_id:
        return frozenset()
    # Whether a second person is required is a setting, and not the word of the row.
    if approval.decision == Approval.Decision.NOT_NEEDED and settings.GRANT_APPROVAL:
        return frozenset()
    if not is_approved_as(COPY, request, as_asked):
        return frozenset()
    return frozenset(map(UUID, request.preview[KEPT]["sessions"]))


def left_out_of(
    scope: SubjectScope, allowed: frozenset[UUID], *, among: Collection[UUID] | None = None
) -> dict[UUID, str]:
    """Names of the stores of locked sessions that a copy must not have, by session: of all, or `among` these. One
    query.
    """
    found = locked_records(scope).exclude(pk__in=allowed)
    return dict((found if among is None else found.filter(pk__in=among)).values_list("pk", "store__name"))
