"""Access to grants: unknown grants and those of other users both answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.shortcuts import get_object_or_404

from memadmin.accounts.grants.services import DECIDE
from memadmin.accounts.models import ContentGrant


def grant_for(user: User, grant_id: UUID) -> ContentGrant:
    """A grant that the user requested or may decide on. Raises Http404."""
    theirs = Q() if user.has_perm(DECIDE) else Q(requested_by=user)
    return get_object_or_404(ContentGrant.objects.with_people().filter(theirs), pk=grant_id)
