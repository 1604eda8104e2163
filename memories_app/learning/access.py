"""Access to signals; unknown ones and those of others both answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memories_app.models import Signal


def feedback_of(user: User, signal_id: UUID) -> Signal:
    """Feedback of this user on an item of a session. Raises Http404."""
    own = Signal.objects.filter(kind=Signal.Kind.FEEDBACK, given_by=user, record_id__isnull=False)
    return get_object_or_404(own, pk=signal_id)
