"""Access to role requests: administrators see all of them, unknown ones answer 404."""

from __future__ import annotations

from uuid import UUID

from django.shortcuts import get_object_or_404

from memadmin.accounts.models import RoleRequest


def request_for(request_id: UUID) -> RoleRequest:
    """Raises Http404."""
    return get_object_or_404(RoleRequest, pk=request_id)
