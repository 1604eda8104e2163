"""Who may open what of the log; unknown answers 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.audit.models import AuditEvent


def event_for(user: User, event_id: UUID) -> AuditEvent:
    """An event that this operator may see: every one, for whoever may see any. Raises Http404."""
    return get_object_or_404(AuditEvent, id=event_id)
