"""Labels of legal holds in the audit log."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from uuid import UUID

from django.contrib.auth.models import User

from memadmin.audit.log.label_registry import Name, guard_values, names
from memadmin.retention.models import LegalHold

HOLD = "retention.legalhold"

# Reasons and labels identify people and cases.
guard_values(HOLD, "retention.view_hold")


@names(HOLD, noun="legal hold")
def hold_names(viewer: User, refs: Collection[UUID]) -> Mapping[UUID, Name]:
    """Number of each hold, with a link for viewers who may see holds. One query."""
    may_open = viewer.has_perm("retention.view_hold")
    return {
        hold.pk: Name(f"legal hold {hold}", hold.get_absolute_url() if may_open else "")
        for hold in LegalHold.objects.filter(pk__in=refs)
    }
