"""Search for what is left of a person after an erasure."""

from __future__ import annotations

from django.utils.timezone import now

from memadmin import audit
from memadmin.audit.transparency.canonical import utc
from memadmin.erasure import audit_events
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.scope import Scope
from memadmin.erasure.steps.left_over import left_over
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
