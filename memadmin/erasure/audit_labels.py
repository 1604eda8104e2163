"""Labels of requests in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib.auth.models import User

from memadmin.audit.log.label_registry import Name, guard_values, names
from memadmin.erasure.models import SubjectRequest

REQUEST = "erasure.subjectrequest"

guard_values(REQUEST, "erasure.view_request")


@names(REQUEST, noun="request")
def request_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number of each request, with a link for viewers who may see requests. One query."""
    may_open = viewer.has_perm("erasure.view_request")
    return {
        request.id: Name(f"request {request}", request.get_absolute_url() if may_open else "")
        for request in SubjectRequest.objects.filter(id__in=refs)
    }
