"""Who may open what. One function per kind of object; unknown and not-yours both answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memories_app.models import Memory


def memory_for(user: User, memory_id: UUID) -> Memory:
    """A memory that this operator may see, proposals included. Raises Http404."""
    known = Memory.objects.select_related("subject", "replaces", "merged_into").prefetch_related("subject__aliases")
    return get_object_or_404(known.defer("embedding", "words"), pk=memory_id)
