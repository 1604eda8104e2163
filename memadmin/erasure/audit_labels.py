"""Labels of requests, and of the record of processing, in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib.auth.models import User
from django.urls import reverse

from memadmin.audit.log.label_registry import Name, guard_values, names
from memadmin.erasure.audit_events import PROCESSING_RECORD, REQUEST
from memadmin.erasure.batches.audit_events import BATCH
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.permissions import VIEW, VIEW_MAP

guard_values(REQUEST, VIEW)
guard_values(PROCESSING_RECORD, VIEW_MAP)
guard_values(BATCH, VIEW)


@names(REQUEST, noun="request")
def request_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number of each request, with a link for viewers who may see requests. One query."""
    may_open = viewer.has_perm(VIEW)
    return {
        request.id: Name(f"request {request}", request.get_absolute_url() if may_open else "")
        for request in SubjectRequest.objects.filter(id__in=refs)
    }


@names(PROCESSING_RECORD, noun="record of processing")
def record_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """The one record, with a link for viewers who may see the data map. No query."""
    address = reverse("data_map:map") if viewer.has_perm(VIEW_MAP) else ""
    return {ref: Name("record of processing", address) for ref in refs}


@names(BATCH, noun="batch")
def batch_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number of each batch, with a link for viewers who may see requests. One query."""
    may_open = viewer.has_perm(VIEW)
    return {
        batch.id: Name(f"batch {batch}", batch.get_absolute_url() if may_open else "")
        for batch in RequestBatch.objects.filter(id__in=refs)
    }
