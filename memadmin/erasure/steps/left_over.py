"""Rows that finished steps have left, or that came after them."""

from __future__ import annotations

from collections.abc import Iterator

from memadmin.erasure.models import ErasureStep, SubjectRequest
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps import step_named, steps_with_rows
from memadmin.erasure.steps.away import wait_for_step
from memadmin.retention.models import LegalHold
from memadmin.runs.engine import Lease
from sessions_app.stores.base import StoreUnavailable


def left_over(lease: Lease, request: SubjectRequest, scope: SubjectScope) -> Iterator[tuple[ErasureStep, int]]:
    """The finished steps at which there are rows that no hold keeps, and that the step could erase; and how many.

    Raises Wait for a store that does not respond, after its step was set back, and what the lease raises.
    """
    scope.reread_holds()
    with_rows = steps_with_rows(scope)
    for row in ErasureStep.objects.filter(request=request, state=ErasureStep.State.DONE):
        try:
            if row.name in with_rows and (count := left_over_at(scope, row)):
                yield row, count
        except StoreUnavailable as problem:
            raise wait_for_step(lease, row, problem) from problem
        lease.keep()


def left_over_at(scope: SubjectScope, row: ErasureStep) -> int:
    """Number of such rows at one step. Raises StoreUnavailable."""
    counted = step_named(row.name).count(scope, row.place)
    if counted.problem:
        raise StoreUnavailable(counted.problem)
    # The triggers may have kept more than the count knows; but what they kept goes when the hold is released.
    was_released = bool(row.held) and LegalHold.objects.filter(released_at__gt=row.ended_at).exists()
    held = counted.held if was_released else max(counted.held, row.held)
    return max(counted.rows - held - sum(map(int, row.exceptions.values())), 0)
