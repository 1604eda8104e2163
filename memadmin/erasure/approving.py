"""The approval of an erasure: what it is about, and who does not decide."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.same_person import addresses_of
from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure import locators
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import APPROVE
from memadmin.erasure.preview import covered_now
from sessions_app.models import SubjectAlias


def shown_of(request: SubjectRequest) -> dict[str, Any]:
    """Values that a decision is about: the counts, and the subjects, IDs and sessions as they are now. One query."""
    return {
        "subject": request.subject_id,
        "ground": request.ground,
        "preview": request.preview,
        "covers": covered_now(request),
    }


def is_about(request: SubjectRequest, user: User) -> bool:
    """True if the request is about this operator: the user name or an e-mail address is an ID of the subject, or one
    of the further names of the case. Up to four queries.
    """
    keys = SubjectAlias.objects.filter(subject_id__in=request.subject.group_ids()).values_list("key", flat=True)
    try:
        known_as = locators.unseal(request.locators)
    except SecretKeyChanged:
        known_as = []
    known = {text.strip().casefold() for text in (*keys, *known_as)}
    return not known.isdisjoint({user.username.casefold(), *addresses_of(user)})


def own_request(what: str = "This request") -> str:
    return f"{what} is about yourself. Another person has to handle it. Nothing was changed."


ERASURE = declare(
    ApprovalKind(
        "erasure",
        APPROVE,
        shown_of,
        waiting="erasures",
        page="erasure:requests",
        facts="By another person than the requester, who reads the preview.",
        symbol="user-check",
        refusal=lambda request, user: own_request() if is_about(request, user) else "",
    )
)
