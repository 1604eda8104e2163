"""End of an erasure: its outcome, the signed receipt, and what the case no longer needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Sum
from django.db.models.functions import Now

import memadmin
from memadmin import audit
from memadmin.audit.models import ActorKind, AuditActor
from memadmin.audit.transparency import receipts
from memadmin.erasure import audit_events
from memadmin.erasure.exceptions import Left
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.runs.engine import Lease, Wait
from memadmin.runs.models import Run

State, StepState = SubjectRequest.State, ErasureStep.State

WAIT_FOR_SEQUENCER = timedelta(seconds=5)


def exceptions_of(request: SubjectRequest) -> list[dict[str, Any]]:
    """What stays, in the order of the steps: code, place and number of rows. One query."""
    found: list[dict[str, Any]] = []
    for row in ErasureStep.objects.filter(request=request):
        place = row.place or row.name
        if row.held:
            found.append({"code": Left.HELD.value, "place": place, "count": row.held})
        if row.state == StepState.LEFT_OUT:
            found.append({"code": Left.LEFT_OUT.value, "place": place, "count": max(row.expected - row.erased, 0)})
        found += [{"code": code, "place": place, "count": count} for code, count in sorted(row.exceptions.items())]
    for place in request.scans[-1].get("places", ()) if request.scans else ():
        code = place["code"] or Left.STILL_FOUND.value
        found.append({"code": code, "place": place["place"], "count": place["found"]})
    return found


def outcome_of(request: SubjectRequest) -> SubjectRequest.State:
    return State.COMPLETE_WITH_EXCEPTIONS if exceptions_of(request) else State.COMPLETE


def payload_of(request: SubjectRequest) -> dict[str, Any]:
    """What the receipt states: ids, counts, codes and times, and no personal data."""
    erased: dict[str, int] = {}
    held: dict[str, int] = {}
    for row in ErasureStep.objects.filter(request=request):
        erased[row.place or row.name] = row.erased
        if row.held:
            held[row.place or row.name] = row.held
    people = {"requester": request.requested_by, "approver": request.approved_by}
    return {
        "request": str(request.id),
        "number": request.number,
        "kind": request.kind,
        "outcome": outcome_of(request).value,
        "subject": str(request.subject_id),
        "received_on": request.received_on.isoformat(),
        "approved_at": instant(request.approved_at),
        "started_at": instant(request.started_at),
        "erased_at": request.scans[0]["at"],
        "actors": {role: actor_ref(user) for role, user in people.items() if user},
        "erased": erased,
        "held": held,
        "exceptions": exceptions_of(request),
        "out_of_reach": request.preview.get("out_of_reach", []),
        "scans": [{key: scan[key] for key in ("at", "rows", "found")} for scan in request.scans],
        "code_version": memadmin.__version__,
    }


def instant(at: datetime | None) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z") if at else ""


def actor_ref(user: User) -> str:
    """Id of a person in the log; empty if the person's name was erased there."""
    ref = AuditActor.objects.filter(kind=ActorKind.PERSON, user_id=user.pk).values_list("ref", flat=True).first()
    return str(ref or "")


def issue_receipt(lease: Lease, request: SubjectRequest) -> None:
    """Records the answer and stores its receipt. Raises Wait until the log has sequenced and signed the event."""
    request.refresh_from_db()
    cursor = lease.run.cursor
    if cursor.get("scans") != len(request.scans):
        payload = payload_of(request)
        with lease.chunk() as run:
            event = audit.record(
                audit_events.REQUEST_CLOSED,
                target=request,
                subject=request.subject_id,
                shown=[receipts.id_of(payload)],
                counters={
                    "rows": sum(payload["erased"].values()),
                    "held": sum(payload["held"].values()),
                    "exceptions": len(payload["exceptions"]),
                },
            )
            run.cursor = {**run.cursor, "payload": payload, "event": str(event), "scans": len(request.scans)}
    try:
        receipt = receipts.issue(lease.run.cursor["payload"], event=lease.run.cursor["event"])
    except receipts.CannotIssue as problem:
        raise Wait(f"The receipt waits: {problem}", retry_after=WAIT_FOR_SEQUENCER) from problem
    with lease.chunk() as run:
        run.exceptions = []
        for row in exceptions_of(request):
            run.add_exception(row["code"], row["place"], row["count"])
        SubjectRequest.objects.filter(pk=request.pk).update(receipt=receipt)
    request.refresh_from_db()


def close(run: Run) -> None:
    """Closes the case with its run, in the run's transaction."""
    request = SubjectRequest.objects.select_for_update().get(run=run)
    if request.is_closed:
        return
    if run.state == Run.State.CANCELLED:
        state = State.CANCELLED
    elif run.state == Run.State.FAILED:
        # It can be resumed: the case stays open.
        request.note(RequestNote.Code.STOPPED)
        return
    else:
        state = outcome_of(request)
        # Texts of people about the person are not kept longer than the person's data.
        request.notes.exclude(text="").update(text="")
    if state != State.CANCELLED:
        request.note(RequestNote.Code.CLOSED)
    SubjectRequest.objects.filter(pk=request.pk).update(state=state, closed_at=Now(), locators=b"")


def rows_erased(request: SubjectRequest) -> int:
    return ErasureStep.objects.filter(request=request).aggregate(rows=Sum("erased"))["rows"] or 0
