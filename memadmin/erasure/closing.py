"""End of an erasure: its outcome, the signed receipt, and what the case no longer needs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models.functions import Now

import memadmin
from memadmin import audit
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent
from memadmin.audit.transparency import receipts
from memadmin.audit.transparency.canonical import utc
from memadmin.audit.transparency.keys import NoSigningKey
from memadmin.erasure import audit_events
from memadmin.erasure.data_map import places
from memadmin.erasure.exceptions import Left, OutOfReach
from memadmin.erasure.models import ErasureStep, RequestNote, SubjectRequest
from memadmin.erasure.on_replica import wait_for_replica
from memadmin.runs.engine import Lease, Wait
from memadmin.runs.models import Run

State, StepState = SubjectRequest.State, ErasureStep.State

WAIT_FOR_SEQUENCER = timedelta(seconds=5)


def exceptions_of(request: SubjectRequest) -> list[dict[str, Any]]:
    """Rows that stay after an erasure, in the order of the steps: code, place and number. One query."""
    found: list[dict[str, Any]] = []
    for row in ErasureStep.objects.filter(request=request):
        if row.held:
            found.append({"code": Left.HELD.value, "place": row.holder, "count": row.held})
        if row.state == StepState.LEFT_OUT:
            left = max(row.expected - row.erased, 0)
            found.append({"code": Left.LEFT_OUT.value, "place": row.holder, "count": left})
        found += [{"code": code, "place": row.holder, "count": count} for code, count in sorted(row.exceptions.items())]
    for row in request.scans[-1].get("places", ()) if request.scans else ():
        code = row["code"] or Left.STILL_FOUND.value
        found.append({"code": code, "place": scan_holder(row["place"]), "count": row["found"]})
    return found


def scan_holder(place: str) -> str:
    """Name in receipts of a place at which a scan has found something, such as `scan/agent_messages.message_data`."""
    return "scan/" + place_name(place)


def place_name(place: str) -> str:
    """Name of a table or store in the form that receipts have."""
    return re.sub("[^A-Za-z0-9_.-]", "_", place)[:64]


def outcome_of(request: SubjectRequest) -> SubjectRequest.State:
    return outcome_with(exceptions_of(request))


def outcome_with(exceptions: list[dict[str, Any]]) -> SubjectRequest.State:
    return State.COMPLETE_WITH_EXCEPTIONS if exceptions else State.COMPLETE


def payload_of(request: SubjectRequest) -> dict[str, Any]:
    """Content of the receipt: ids, counts, codes and times, and no personal data; `receipts` checks its form."""
    steps, exceptions = list(ErasureStep.objects.filter(request=request)), exceptions_of(request)
    decision = request.decision if request.decision and request.decision.is_approved else None
    # Their ids alone: the worker may not read every column of an account.
    people = {"requester": decision.asked_by_id, "approver": decision.decided_by_id} if decision else {}
    times = {
        "received_on": request.received_on.isoformat(),
        "due_on": request.due_on.isoformat(),
        "approved_at": decision and decision.decided_at and utc(decision.decided_at),
        "started_at": request.started_at and utc(request.started_at),
        "erased_at": request.scans[0]["at"],
    }
    out_of_reach = request.preview.get("out_of_reach", [])
    return {
        "request": str(request.id),
        "number": request.number,
        "kind": request.kind,
        "outcome": outcome_with(exceptions).value,
        "subject": str(request.subject_id),
        "times": {name: at for name, at in times.items() if at},
        "actors": [{"role": role, "actor": ref} for role, user_id in people.items() if (ref := actor_ref(user_id))],
        "counts": {step.holder: step.erased for step in steps},
        "held": {step.holder: step.held for step in steps if step.held},
        "exceptions": exceptions,
        "out_of_reach": [
            {"code": row["code"], "place": place_name(row["place"]) or "anywhere", "until": row["until"] or None}
            for row in out_of_reach
        ],
        "scans": [{"at": scan["at"], "rows_read": scan["rows"], "found": scan["found"]} for scan in request.scans],
        "versions": {"code": memadmin.__version__, "data_map": places.version(), "policy": None},
        "backups_until": next((row["until"] for row in out_of_reach if row["code"] == OutOfReach.BACKUPS), None),
    }


def actor_ref(user_id: int | None) -> str:
    """Id of a person in the log; empty if there was none, or the person's name was erased there."""
    if user_id is None:
        return ""
    ref = AuditActor.objects.filter(kind=ActorKind.PERSON, user_id=user_id).values_list("ref", flat=True).first()
    return str(ref or "")


def issue_receipt(lease: Lease, request: SubjectRequest) -> None:
    """Records the answer and stores its receipt; from then on the state of the case is SCANNING, until it is closed.

    Raises Wait until the replica, if there is one, has replayed the erasure, and the log has sequenced and signed the
    event.
    """
    payload = payload_of(request)
    if not is_recorded(payload, request, lease.run.cursor.get("event")):
        wait_for_replica(lease, request)
        payload = payload_of(request)
        with lease.chunk() as run:
            event = audit.record(
                audit_events.REQUEST_CLOSED,
                target=request,
                subject=request.subject_id,
                shown=[receipts.id_of(payload)],
                counters={
                    "rows": sum(payload["counts"].values()),
                    "held": sum(payload["held"].values()),
                    "exceptions": len(payload["exceptions"]),
                },
            )
            run.cursor = {**run.cursor, "event": str(event)}
    try:
        receipt = receipts.issue(payload, event=UUID(lease.run.cursor["event"]))
    except receipts.NotYetSequenced as problem:
        raise Wait(str(problem), retry_after=WAIT_FOR_SEQUENCER) from problem
    except NoSigningKey as problem:
        raise Wait(str(problem)) from problem
    with lease.chunk() as run:
        run.exceptions = []
        for row in exceptions_of(request):
            run.add_exception(row["code"], row["place"], row["count"])
        SubjectRequest.objects.filter(pk=request.pk).update(receipt=receipt, state=State.SCANNING)
    request.refresh_from_db()


def is_recorded(payload: dict[str, Any], request: SubjectRequest, event: str | None) -> bool:
    """Whether this event names the payload. A payload is never stored before it is signed: it is made of the facts each
    time. One query, or none.
    """
    return (
        event is not None
        and AuditEvent.objects.filter(
            id=event,
            type=audit_events.REQUEST_CLOSED.name,
            object_ref=request.id,
            shown__contains=[receipts.id_of(payload)],
        ).exists()
    )


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
        notes = RequestNote.objects.filter(request__subject_id__in=request.subject.group_ids())
        notes.exclude(text="").update(text="")
        ErasureStep.objects.filter(request=request).update(cursor="")
    if state != State.CANCELLED:
        request.note(RequestNote.Code.CLOSED)
    SubjectRequest.objects.filter(pk=request.pk).update(state=state, closed_at=Now(), locators=b"")
