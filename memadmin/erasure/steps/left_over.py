"""What a finished step has left, or what came after it."""

from __future__ import annotations

from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps import step_named
from memadmin.retention.models import LegalHold
from sessions_app.stores.base import StoreUnavailable


def left_over(scope: SubjectScope, row: ErasureStep) -> int:
    """Rows at a finished step that no hold keeps, and that the step could erase. Raises StoreUnavailable."""
    counted = step_named(row.name).count(scope, row.place)
    if counted.problem:
        raise StoreUnavailable(counted.problem)
    # The triggers may have kept more than the count knows; but what they kept goes when the hold is released.
    was_released = bool(row.held) and LegalHold.objects.filter(released_at__gt=row.ended_at).exists()
    held = counted.held if was_released else max(counted.held, row.held)
    return max(counted.rows - held - sum(map(int, row.exceptions.values())), 0)
