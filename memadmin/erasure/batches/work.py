"""The run of a batch: opens a case for each line, one after the other, and carries it out.

The truth about a line is its case. Opening a case and linking it to its line is one transaction of this run; so a
process that is killed leaves either both or neither, and the next one continues at the next line.
"""

from __future__ import annotations

import time
from collections import Counter
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.erasure import audit_events as request_events
from memadmin.erasure import services as requests
from memadmin.erasure import together
from memadmin.erasure import work as erasures
from memadmin.erasure.batches import audit_events, outcomes, services
from memadmin.erasure.batches.approving import extents_now, is_approved
from memadmin.erasure.batches.outcomes import LineOutcome
from memadmin.erasure.batches.sealed import unseal
from memadmin.erasure.models import BatchLine, RequestBatch, RequestNote, SubjectRequest
from memadmin.erasure.preview import out_of_reach
from memadmin.erasure.scope import scope_of
from memadmin.runs import engine
from memadmin.runs import services as runs
from memadmin.runs.engine import Interrupted, Lease, NeedsDecision, Wait
from memadmin.runs.models import Run

State, Code = RequestBatch.State, RequestNote.Code

COUNT_SECONDS = 2.0


def work(lease: Lease) -> None:
    """Works on a batch until every case is closed. Raises what the lease raises, and Wait while cases wait."""
    batch = RequestBatch.objects.get(run=lease.run)
    if not batch.is_started:
        start(lease, batch)
    children = Run.objects.filter(subject_request__batch_lines__batch=batch)
    hand_over = PauseCheck(lease, batch)
    # Those of a process that was killed come first. One that has waited comes last: thousands that ask again and again
    # whether a store is back must not keep the others from being opened.
    for child in together.workable(children).filter(retry_at__isnull=True):
        hand_over()
        engine.carry_on(child, seconds=engine.SLICE_SECONDS)
    while open_next(lease, batch):
        hand_over()
    problem = together.work_off(lease, children, hand_over)
    if sentence := str(problem or "") or why_not_closed(count(lease, batch)):
        raise together.wait_for_cases(children, sentence, problem)


def why_not_closed(counts: Counter[str]) -> str:
    """Reason why the batch waits, a sentence; empty if every case is closed."""
    unfinished = [outcome for outcome in outcomes.UNFINISHED if counts[outcome]]
    if unfinished == [LineOutcome.SCANNING]:
        return "Everything is erased. The second scan of each subject is a day after its first."
    return f"Not every case is closed: {outcomes.in_words(counts, unfinished)}." if unfinished else ""


def start(lease: Lease, batch: RequestBatch) -> None:
    """Raises Wait while the batch can be cancelled, and NeedsDecision if it was not approved as it was counted."""
    if batch.starts_at and (rest := batch.starts_at - now()) > timedelta(0):
        # A person can let a waiting run continue at any time.
        raise Wait("The time to cancel is not over.", retry_after=rest)
    with lease.chunk():
        locked = RequestBatch.objects.select_for_update().get(pk=batch.pk)
        if locked.state != State.APPROVED:
            raise Interrupted
        if not is_approved(locked):
            raise NeedsDecision("The count differs from what was approved. Nothing was erased. Cancel this batch.")
        audit.record(audit_events.BATCH_STARTED, target=locked)
        RequestBatch.objects.filter(pk=batch.pk).update(state=State.RUNNING, started_at=Now())
    batch.refresh_from_db()


class PauseCheck:
    """Check between two cases: keeps the lease, and ends the work at a pause and at the end of the slice."""

    def __init__(self, lease: Lease, batch: RequestBatch) -> None:
        self._lease, self._batch = lease, batch
        self._counted_at = -COUNT_SECONDS

    def __call__(self) -> None:
        # Not of all lines after each of them.
        if time.monotonic() - self._counted_at > COUNT_SECONDS:
            count(self._lease, self._batch)
            self._counted_at = time.monotonic()
        self._lease.keep()
        self._lease.checkpoint()


def count(lease: Lease, batch: RequestBatch) -> Counter[str]:
    """Number of lines of each outcome; notes how many are done, by other workers too."""
    counts = outcomes.counts(batch)
    with lease.chunk() as run:
        run.total, run.done = counts.total(), outcomes.number_of(counts, outcomes.ERASED)
    return counts


def open_next(lease: Lease, batch: RequestBatch) -> bool:
    """Opens the case of the next line, in one transaction, and carries it out as far as it comes; False if every line
    has one.
    """
    run = None
    with lease.chunk():
        # As it is now, and as it stays until the case is open: its time may have been extended.
        batch = RequestBatch.objects.select_for_update(no_key=True, of=("self",)).select_related("run").get(pk=batch.pk)
        lines = services.accepted_lines(batch).filter(request__isnull=True).select_related("subject")
        line = lines.order_by("number").first()
        if line is not None:
            run = open_case(batch, line)
    if run is not None:
        engine.carry_on(run, seconds=engine.SLICE_SECONDS)
    return line is not None


def open_case(batch: RequestBatch, line: BatchLine) -> Run | None:
    """Opens the approved case of a line, and returns its run; or joins the open case of the subject.

    In the caller's transaction.
    """
    subject = line.subject
    assert subject is not None, "an accepted line has its subject"
    if extents_now(batch, of=line) != {line.number: line.extent}:
        # What was approved is not what would be erased.
        BatchLine.objects.filter(pk=line.pk).update(problem=BatchLine.Problem.CHANGED)
        return None
    request, is_new = requests.open_request(
        SubjectRequest.Kind.ERASURE,
        subject,
        by=person(batch.uploaded_by_id),
        channel=SubjectRequest.Channel.FILE,
        received_on=batch.received_on,
        ground=batch.ground,
        note=unseal(line.sealed).note,
    )
    BatchLine.objects.filter(pk=line.pk).update(request=request)
    if not is_new:
        return None
    approval = batch.approval
    assert approval is not None, "it is approved"
    handler, approver = person(approval.asked_by_id), person(approval.decided_by_id)
    by_batch = f"By the batch {batch}."
    request.note(Code.CHECKED, by=handler, text=by_batch)
    audit.record(request_events.IDENTITY_CHECKED, by=handler, target=request, subject=subject.pk)
    run = runs.request_run(erasures.RUN_KIND, by=approver)
    columns: dict[str, Any] = {
        "state": SubjectRequest.State.APPROVED,
        "identity_checked_by": handler,
        "identity_checked_at": approval.asked_at,
        "preview": {
            "holders": [],
            "out_of_reach": out_of_reach(scope_of(subject, [])),
            "covers": {"digest": line.extent, "at": batch.preview["at"]},
        },
        "due_on": batch.due_on,
        "first_due_on": batch.first_due_on,
        "run": run,
        "scanned_by": batch.run,
    }
    requests.changed(request, request_events.REQUEST_APPROVED, Code.APPROVED, by=approver, text=by_batch, **columns)
    return run


def person(user_id: int | None) -> User | None:
    """A user, with the columns that the worker may read. One query."""
    columns = ("username", "first_name", "last_name", "email", "is_active", "is_staff", "is_superuser")
    return User.objects.only(*columns).filter(pk=user_id).first() if user_id else None


def close(run: Run) -> None:
    """Closes the batch with its run, in the run's transaction."""
    batch = RequestBatch.objects.select_for_update().get(run=run)
    # A failed run can be resumed: the batch stays open.
    if batch.is_closed or run.state == Run.State.FAILED:
        return
    if run.state == Run.State.CANCELLED:
        services.close(batch, State.CANCELLED)
        return
    counts = outcomes.counts(batch)
    subjects, complete = counts.total(), counts[LineOutcome.COMPLETE]
    audit.record(audit_events.BATCH_CLOSED, target=batch, counters={"subjects": subjects, "complete": complete})
    services.close(batch, State.COMPLETE if subjects == complete else State.COMPLETE_WITH_EXCEPTIONS)
