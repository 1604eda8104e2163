"""Services of a batch: upload, correct a line, ask for approval, approve, reject, extend, cancel, retry."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.audit.log.types import EventType
from memadmin.erasure.batches import audit_events, outcomes
from memadmin.erasure.batches.approving import ERASURE_BATCH, as_counted, is_about, shown_of
from memadmin.erasure.batches.checking import check_lines
from memadmin.erasure.batches.parsing import parse, parse_line
from memadmin.erasure.batches.sealed import unseal
from memadmin.erasure.deadlines import due_date
from memadmin.erasure.models import BatchLine, RequestBatch, SubjectRequest
from memadmin.erasure.services import (
    AlreadyStarted,
    ExtentChanged,
    OwnRequest,
    RequestError,
    WrongState,
    check_extension,
    extend_locked,
    may_extend,
    require_preview,
)
from memadmin.runs import services as runs
from memadmin.runs.models import Run

State = RequestBatch.State

RUN_KIND, PREVIEW_KIND = "erasure_batch", "batch_preview"

LINES_AT_ONCE = 1_000


class AlreadyUploaded(RequestError):
    def __init__(self, batch: RequestBatch) -> None:
        self.batch = batch
        super().__init__(f"This file is open as batch {batch} already. Nothing was changed.")


class NothingAccepted(RequestError):
    def __init__(self) -> None:
        super().__init__("No line of the file is part of the batch: there is nothing to approve. Correct lines first.")


class WrongConfirmation(RequestError):
    def __init__(self, wanted: str) -> None:
        super().__init__(f"Type “{wanted}”. Nothing was approved.")


def upload(
    data: bytes, *, name: str, ground: str, note: str, by: User | None, received_on: date | None = None
) -> RequestBatch:
    """A new batch from a CSV file, with the count of its preview requested. Nothing is erased.

    Raises BadFile, and AlreadyUploaded while a batch of the same file is open.
    """
    parsed = parse(data)
    digest = hashlib.sha256(data).hexdigest()
    received_on = received_on or now().date()
    try:
        with transaction.atomic():
            batch = RequestBatch.objects.create(
                file_name="".join(filter(str.isprintable, name))[:80],
                file_size=len(data),
                file_sha256=digest,
                ground=ground,
                note=note,
                received_on=received_on,
                due_on=due_date(received_on),
                uploaded_by=by,
            )
            lines = check_lines(parsed)
            for line in lines:
                line.batch = batch
            BatchLine.objects.bulk_create(lines, batch_size=LINES_AT_ONCE)
            accepted = sum(not line.problem for line in lines)
            audit.record(
                audit_events.BATCH_UPLOADED,
                by=by,
                target=batch,
                reason_code=ground,
                counters={"lines": len(lines), "accepted": accepted},
            )
            if accepted:
                request_preview(batch, by=by)
    except IntegrityError as problem:
        if open_one := open_batch_of(digest):
            raise AlreadyUploaded(open_one) from problem
        raise
    batch.refresh_from_db()
    return batch


def open_batch_of(digest: str) -> RequestBatch | None:
    """The open batch of the file with this SHA-256."""
    return RequestBatch.objects.open().filter(file_sha256=digest).first()


def request_preview(batch: RequestBatch, *, by: User | None) -> None:
    """Counts in a run, in place of one that counts now: what waits for approval is void, and is requested again. In the
    caller's transaction.
    """
    approvals.make_void(batch, by=by)
    run = runs.request_run(PREVIEW_KIND, by=by, total=accepted_lines(batch).count())
    RequestBatch.objects.filter(pk=batch.pk).update(
        preview_run=run, previewed_at=None, preview={}, state=State.UPLOADED
    )


@transaction.atomic
def count_again(batch: RequestBatch, *, by: User) -> RequestBatch:
    """Counts what would be erased, once more. Raises WrongState and NothingAccepted."""
    batch = locked(batch, State.UPLOADED, State.AWAITING)
    if not accepted_lines(batch).exists():
        raise NothingAccepted
    request_preview(batch, by=by)
    batch.refresh_from_db()
    return batch


@transaction.atomic
def correct_line(batch: RequestBatch, line: BatchLine, *, key: str, kind: str, by: User) -> BatchLine:
    """A broken line with another key and kind, which may be broken, too. Raises WrongState."""
    batch = locked(batch, State.UPLOADED)
    line = BatchLine.objects.select_for_update().get(pk=line.pk)
    if line.problem not in BatchLine.CORRECTABLE:
        raise WrongState(batch)
    taken = dict(accepted_lines(batch).values_list("subject_id", "number"))
    (checked,) = check_lines([parse_line(line.number, [key, kind, unseal(line.sealed).note])], taken)
    checked.pk, checked.batch = line.pk, batch
    checked.save(force_update=True)
    audit.record(audit_events.BATCH_LINE_CORRECTED, by=by, target=batch, counters={"line": line.number})
    if not checked.problem:
        request_preview(batch, by=by)
    return checked


@transaction.atomic
def request_approval(batch: RequestBatch, *, by: User) -> RequestBatch:
    """Asks a second person to approve. Raises WrongState, NothingAccepted, PreviewNeeded, ExtentChanged and
    OwnRequest.
    """
    batch = locked(batch, State.UPLOADED)
    refuse_own(batch, by)
    if not accepted_lines(batch).exists():
        raise NothingAccepted
    require_preview(batch)
    if shown_of(batch) != as_counted(batch):
        raise ExtentChanged
    with approvals.asking(ERASURE_BATCH, batch, by=by):
        RequestBatch.objects.filter(pk=batch.pk).update(state=State.AWAITING)
    batch.refresh_from_db()
    return batch


def approve(
    batch: RequestBatch, *, by: User, typed: str, shown: str, note: str = "", window: timedelta | None = None
) -> RequestBatch:
    """Approves all erasures of the batch, as `shown`, as the second person; they start when the time to cancel is over.

    Raises WrongState, ApprovalError, WrongConfirmation and PreviewNeeded.
    """
    with approvals.deciding(batch, by=by):
        batch = locked(batch, State.AWAITING)
        count = accepted_lines(batch).count()
        approvals.approve(batch, by=by, shown=shown, check=lambda: check_typed(typed, confirmation(count)))
        starts_at = now() + (settings.CANCEL_WINDOW if window is None else window)
        run = runs.request_run(RUN_KIND, by=by, retry_at=starts_at, total=count)
        columns: dict[str, Any] = {"state": State.APPROVED, "starts_at": starts_at, "run": run}
        columns["note"] = with_note(batch, note)
        return changed(batch, audit_events.BATCH_APPROVED, by=by, subjects=count, **columns)


def check_typed(typed: str, wanted: str) -> None:
    if " ".join(typed.split()).lower() != wanted:
        raise WrongConfirmation(wanted)


def reject(batch: RequestBatch, *, by: User, note: str = "") -> RequestBatch:
    """Returns a batch to who handles it, instead of approving it; or withdraws one's own. Raises WrongState,
    OwnRequest and ApprovalError.
    """
    with approvals.deciding(batch, by=by):
        batch = locked(batch, State.AWAITING)
        refuse_own(batch, by)
        approvals.reject(batch, by=by)
        RequestBatch.objects.filter(pk=batch.pk).update(state=State.UPLOADED, note=with_note(batch, note))
    batch.refresh_from_db()
    return batch


def with_note(batch: RequestBatch, note: str) -> str:
    """The note of a batch with another one."""
    return f"{batch.note}\n{note}".strip()[:2_000]


def refuse_own(batch: RequestBatch, user: User) -> None:
    """Raises OwnRequest if a line is about this operator. Three queries."""
    if is_about(batch, user):
        raise OwnRequest("A line of this batch")


def confirmation(count: int) -> str:
    """The text that is typed to approve so many erasures."""
    return f"erase {count}"


@transaction.atomic
def extend(batch: RequestBatch, *, until: date, note: str, by: User) -> RequestBatch:
    """Extends the time of a batch, of its open cases, and of those that it will open; once, as that of a request.

    Cases that were open before the batch, or have a later due date already, keep theirs. Raises WrongState, NotLater
    and OwnRequest.
    """
    batch = locked(batch, *State)
    if not may_extend(batch):
        raise WrongState(batch)
    check_extension(batch, until)
    refuse_own(batch, by)
    cases = SubjectRequest.objects.open().filter(channel=SubjectRequest.Channel.FILE, batch_lines__batch=batch)
    not_extended = cases.filter(first_due_on__isnull=True, due_on=batch.due_on).order_by("number")
    batch = changed(
        batch,
        audit_events.BATCH_EXTENDED,
        by=by,
        subjects=accepted_lines(batch).count(),
        due_on=until,
        reminded=0,
        note=with_note(batch, f"Extended: {note}"),
    )
    extend_locked(list(not_extended.select_for_update(of=("self",))), until=until, note=note, by=by)
    return batch


def cancel(batch: RequestBatch, *, by: User) -> RequestBatch:
    """Ends a batch before anything was erased. Raises AlreadyStarted and WrongState."""
    with transaction.atomic():
        # The run's row before the batch's, as the run itself locks them.
        run_id = RequestBatch.objects.values_list("run", flat=True).get(pk=batch.pk)
        run = Run.objects.select_for_update(no_key=True).get(pk=run_id) if run_id else None
        batch = RequestBatch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
        if batch.is_started:
            raise AlreadyStarted(batch)
        if batch.is_closed or batch.run_id != run_id:
            raise WrongState(batch)
        audit.record(audit_events.BATCH_CANCELLED, by=by, target=batch)
        approvals.make_void(batch, by=by)
        if run is not None:
            runs.cancel_run(run, by=by)
        close(batch, State.CANCELLED)
    batch.refresh_from_db()
    return batch


def close(batch: RequestBatch, state: RequestBatch.State) -> None:
    """Closes a batch and destroys the texts of its lines. In the caller's transaction."""
    BatchLine.objects.filter(batch=batch).update(sealed=b"")
    RequestBatch.objects.filter(pk=batch.pk, closed_at__isnull=True).update(state=state, closed_at=Now(), note="")


@transaction.atomic
def retry_failed(batch: RequestBatch, *, by: User) -> int:
    """Lets the failed cases, and those that a hold stopped, continue; returns how many. Raises WrongState."""
    batch = RequestBatch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    stopped = Run.objects.filter(
        pk__in=outcomes.lines_with_outcome(batch).filter(outcome__in=outcomes.RETRIED).values("request__run")
    )
    count = 0
    for run in stopped:
        with suppress(runs.InvalidRunState):
            runs.resume_run(run, by=by)
            count += 1
    if not count:
        raise WrongState(batch)
    audit.record(audit_events.BATCH_RETRIED, by=by, target=batch, counters={"subjects": count})
    return count


def accepted_lines(batch: RequestBatch) -> Any:
    """Lines that are part of the batch."""
    return BatchLine.objects.filter(batch=batch, problem="")


def broken_lines(batch: RequestBatch) -> Any:
    """Lines that are not part of the batch, in the order of the file."""
    return BatchLine.objects.filter(batch=batch).exclude(problem="").order_by("number", "pk")


def locked(batch: RequestBatch, *states: RequestBatch.State) -> RequestBatch:
    """The locked batch. Raises WrongState if it is in none of these states."""
    batch = RequestBatch.objects.select_for_update(of=("self",)).get(pk=batch.pk)
    if batch.state not in states:
        raise WrongState(batch)
    return batch


def changed(
    batch: RequestBatch, event: EventType, *, by: User | None, subjects: int | None = None, **columns: Any
) -> RequestBatch:
    """Records the event and changes the columns. In the caller's transaction."""
    audit.record(event, by=by, target=batch, counters=None if subjects is None else {"subjects": subjects})
    RequestBatch.objects.filter(pk=batch.pk).update(**columns)
    batch.refresh_from_db()
    return batch
