"""Access to requests of people: unknown ones answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.querysets import SubjectRequestQuerySet


def case_for(user: User, case_id: UUID) -> SubjectRequest:
    """A request with all that its page shows, for operators who may see requests. Raises Http404. Two queries."""
    return get_object_or_404(with_all_shown(), id=case_id)


def access_case_for(user: User, case_id: UUID) -> SubjectRequest:
    """The same for an access request alone."""
    return get_object_or_404(with_all_shown(), id=case_id, kind=SubjectRequest.Kind.ACCESS)


def with_all_shown() -> SubjectRequestQuerySet:
    return SubjectRequest.objects.with_names().select_related("run__reason_by")


def step_for(user: User, case: SubjectRequest, step_id: int) -> ErasureStep:
    """A step of a request that the user may see. Raises Http404. One query."""
    return get_object_or_404(ErasureStep, pk=step_id, request=case)
