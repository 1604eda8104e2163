"""Access to batches: unknown ones answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.erasure.models import BatchLine, RequestBatch

PEOPLE = ("uploaded_by", "approval__asked_by", "approval__decided_by")


def batch_for(user: User, batch_id: UUID) -> RequestBatch:
    """A batch with all that its page shows, for operators who may see requests. Raises Http404. One query."""
    batches = RequestBatch.objects.select_related(*PEOPLE, "run__reason_by", "preview_run")
    return get_object_or_404(batches, id=batch_id)


def line_for(user: User, batch: RequestBatch, number: int) -> BatchLine:
    """A line of a batch that the user may see. Raises Http404. One query."""
    return get_object_or_404(BatchLine, batch=batch, number=number)
