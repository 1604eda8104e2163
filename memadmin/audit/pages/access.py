"""Access to objects of the log; unknown objects answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.audit.models import AuditEvent


def event_for(user: User, event_id: UUID) -> AuditEvent:
    """An event that this operator may see; readers of the log may see all. Raises Http404."""
    return get_object_or_404(AuditEvent, id=event_id)
