"""Search for what is left of a person after an erasure."""

from __future__ import annotations

from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.transparency.canonical import utc
from memadmin.erasure import audit_events
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.scope import Scope
from memadmin.erasure.steps import step_named
from memadmin.retention.models import LegalHold
from memadmin.runs.engine import Lease


def scan(lease: Lease, request: SubjectRequest, scope: Scope) -> int:
    """Searches every place, stores the result with the case, and returns the number of rows found.

    Rows that a hold keeps, or that no step can erase, are not counted.
    """
    found = rows = 0
    for row in ErasureStep.objects.filter(request=request, state=ErasureStep.State.DONE):
        found += left_over(scope, row)
        lease.keep()
    at = utc(now())
    with lease.chunk():
        locked = SubjectRequest.objects.select_for_update().get(pk=request.pk)
        audit.record(
            audit_events.ERASURE_SCANNED,
            target=locked,
            subject=locked.subject_id,
            counters={"rows": rows, "found": found},
        )
        locked.note(RequestNote.Code.FOUND if found else RequestNote.Code.SCANNED)
        scans = [*locked.scans, {"at": at, "rows": rows, "found": found}]
        SubjectRequest.objects.filter(pk=locked.pk).update(scans=scans)
    request.refresh_from_db()
    return found


def left_over(scope: Scope, row: ErasureStep) -> int:
    """Rows at a finished step that no hold keeps, and that the step could have erased."""
    counted = step_named(row.name).count(scope, row.place)
    # The triggers may have kept more than the count knows; but what they kept goes when the hold is released.
    was_released = row.held and LegalHold.objects.filter(released_at__gt=row.ended_at).exists()
    held = counted.held if was_released else max(counted.held, row.held)
    return max(counted.rows - held - sum(row.exceptions.values()), 0)
