"""Access to legal holds: unknown ones answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.retention.models import LegalHold


def hold_for(user: User, hold_id: UUID) -> LegalHold:
    """A hold with its persons and its subject, for operators who may see holds. Raises Http404. Two queries."""
    return get_object_or_404(LegalHold.objects.with_names(), pk=hold_id)
