"""Services of a case: open, check, preview, ask for approval, approve, reject, cancel, refuse, extend, comment, leave
out.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.audit.log.types import EventType
from memadmin.erasure import audit_events, locators, work
from memadmin.erasure.approving import ERASURE, is_about, own_request
from memadmin.erasure.deadlines import EXTENDED_MONTHS, due_date
from memadmin.erasure.models import ErasureStep, RequestBatch, RequestNote, SubjectRequest
from memadmin.erasure.preview import Preview, is_as_counted, preview_erasure
from memadmin.erasure.scope import scope_of
from memadmin.erasure.suppression.entering import may_be_entered
from memadmin.runs import services as runs
from memories_app.learning.signals import stop_learning
from sessions_app.models import Subject, SubjectAlias
from sessions_app.services.subjects import merge_target

Kind, State, Code = SubjectRequest.Kind, SubjectRequest.State, RequestNote.Code

PREVIEW_AGE = timedelta(days=1)
"""Age from which a preview is made again before the approval is requested."""

APPROVAL_AGE = timedelta(days=7)
"""Age from which a preview is made again before the approval."""


class RequestError(Exception):
    """An action that is not possible; the message is a sentence for the operator. Nothing was changed."""


class WrongState(RequestError):
    """The case, or batch, is in another state than the action needs, perhaps since a moment ago."""

    def __init__(self, request: SubjectRequest | RequestBatch) -> None:
        super().__init__(
            f"{request} is {request.get_state_display()}: this is not possible, or no longer. Nothing was changed."
        )


class AlreadyStarted(WrongState):
    """Something was erased already."""

    def __init__(self, request: SubjectRequest | RequestBatch) -> None:
        super().__init__(request)
        self.args = (f"The erasure of {request} has started and cannot be stopped any more. It can be paused.",)


class OwnRequest(RequestError):
    def __init__(self, what: str = "This request") -> None:
        super().__init__(own_request(what))


class WrongKey(RequestError):
    def __init__(self) -> None:
        super().__init__("This is not an ID of the subject. Nothing was approved.")


class SubjectHeld(RequestError):
    def __init__(self, numbers: Collection[int]) -> None:
        holds = ", ".join(f"H-{number}" for number in numbers)
        super().__init__(f"The subject is under the legal hold {holds}. Nothing can be erased until it is released.")


class PreviewNeeded(RequestError):
    def __init__(self) -> None:
        super().__init__("Count first what would be erased: the preview is missing or too old.")


class ExtentChanged(RequestError):
    def __init__(self) -> None:
        super().__init__(
            "Subjects were merged or separated, or IDs or sessions were added or removed, after the count. "
            "Count again first. Nothing was changed."
        )


class NotLater(RequestError):
    def __init__(self, latest: date) -> None:
        super().__init__(f"The new date must be after the due date and not after {latest:%-d %B %Y}.")


@transaction.atomic
def open_request(
    kind: SubjectRequest.Kind,
    subject: Subject,
    *,
    by: User | None,
    channel: SubjectRequest.Channel,
    received_on: date | None = None,
    ground: str = "",
    known_as: Collection[str] = (),
    note: str = "",
) -> tuple[SubjectRequest, bool]:
    """A new case, or the open one of the same kind and subject, which the request joins; and whether it is new.

    `known_as` are further names, addresses and numbers by which the person is looked for after the erasure.
    """
    subject = merge_target(Subject.objects.get(pk=subject.pk))
    received_on = received_on or now().date()
    if joined := open_one(kind, subject):
        return join(joined, by=by, known_as=known_as, note=note), False
    request = SubjectRequest(
        kind=kind,
        subject=subject,
        ground=ground,
        channel=channel,
        received_on=received_on,
        due_on=due_date(received_on),
        opened_by=by,
        locators=locators.seal(known_as) if known_as else b"",
    )
    try:
        with transaction.atomic():
            request.save(force_insert=True)
    except IntegrityError:
        # Opened a moment ago. Asked before, too: an insert that fails leaves a gap in the numbers of cases.
        joined = open_one(kind, subject)
        if joined is None:
            raise
        return join(joined, by=by, known_as=known_as, note=note), False
    audit.record(audit_events.REQUEST_OPENED, by=by, target=request, subject=subject, reason_code=kind)
    request.note(Code.RECEIVED, by=by, text=note)
    request.refresh_from_db()
    return request, True


def open_one(kind: SubjectRequest.Kind, subject: Subject) -> SubjectRequest | None:
    """The open case of this kind and subject, locked."""
    return SubjectRequest.objects.open().select_for_update().filter(subject=subject, kind=kind).first()


def join(request: SubjectRequest, *, by: User | None, known_as: Collection[str], note: str) -> SubjectRequest:
    """A request that was received again joins its locked case. In the caller's transaction."""
    audit.record(audit_events.REQUEST_JOINED, by=by, target=request, subject=request.subject_id)
    request.note(Code.JOINED, by=by, text=note)
    if known_as:
        sealed = locators.seal(
            [*locators.unseal(request.locators), *known_as], keys=locators.unseal_keys(request.locators)
        )
        SubjectRequest.objects.filter(pk=request.pk).update(locators=sealed)
    request.refresh_from_db()
    return request


@transaction.atomic
def check_identity(request: SubjectRequest, *, note: str, by: User) -> SubjectRequest:
    """Notes how the person's identity was checked; a restriction takes effect at once. Raises WrongState."""
    request = locked(request, State.RECEIVED, by=by)
    columns: dict[str, Any] = {"identity_checked_by": by, "identity_checked_at": Now(), "state": State.CHECKED}
    changed(request, audit_events.IDENTITY_CHECKED, Code.CHECKED, by=by, text=note, **columns)
    if request.kind == Kind.RESTRICTION:
        stop_learning(request.subject, by=by)
        changed(request, audit_events.REQUEST_CLOSED, Code.CLOSED, by=by, state=State.COMPLETE, closed_at=Now())
    return request


def make_preview(request: SubjectRequest, *, by: User | None) -> Preview:
    """Counts what would be erased and stores it with the case: what waits for approval is void, and is requested again.

    Reads all stores, without a lock on the case. Raises WrongState and OwnRequest.
    """
    if request.kind != Kind.ERASURE or request.state not in (State.RECEIVED, State.CHECKED, State.AWAITING):
        raise WrongState(request)
    preview = preview_erasure(scope_of(request.subject))
    with transaction.atomic():
        request = locked(request, State.RECEIVED, State.CHECKED, State.AWAITING, by=by)
        audit.record(
            audit_events.REQUEST_PREVIEWED,
            by=by,
            target=request,
            subject=request.subject_id,
            counters={"rows": preview.rows, "held": preview.held},
        )
        request.note(Code.PREVIEWED, by=by)
        columns = {"state": State.CHECKED} if request.state == State.AWAITING else {}
        approvals.make_void(request, by=by)
        SubjectRequest.objects.filter(pk=request.pk).update(preview=preview.as_json(), previewed_at=Now(), **columns)
    return preview


@transaction.atomic
def request_approval(request: SubjectRequest, *, by: User) -> SubjectRequest:
    """Asks a second person to approve. Raises WrongState, PreviewNeeded, ExtentChanged and SubjectHeld."""
    request = locked(request, State.CHECKED, by=by)
    if request.kind != Kind.ERASURE:
        raise WrongState(request)
    require_preview(request)
    if not is_as_counted(request):
        raise ExtentChanged
    refuse_held(request)
    with approvals.asking(ERASURE, request, by=by):
        request.note(Code.REQUESTED, by=by)
        SubjectRequest.objects.filter(pk=request.pk).update(state=State.AWAITING)
    request.refresh_from_db()
    return request


def approve_request(
    request: SubjectRequest, *, by: User, typed: str, shown: str, note: str = "", window: timedelta | None = None
) -> SubjectRequest:
    """Approves what was `shown`, as the second person. Starts when the time to cancel is over.

    Raises WrongState, ApprovalError, WrongKey, SubjectHeld and PreviewNeeded.
    """
    with approvals.deciding(request, by=by):
        request = locked(request, State.AWAITING)
        if request.kind != Kind.ERASURE:
            raise WrongState(request)
        approvals.approve(request, by=by, shown=shown, check=lambda: check_approval(request, typed))
        starts_at = now() + (settings.CANCEL_WINDOW if window is None else window)
        run = runs.request_run(work.RUN_KIND, by=by, retry_at=starts_at)
        columns: dict[str, Any] = {"state": State.APPROVED, "starts_at": starts_at, "run": run}
        return changed(request, audit_events.REQUEST_APPROVED, Code.APPROVED, by=by, text=note, **columns)


def steps_for(request: SubjectRequest, user: User) -> approvals.Steps:
    """What a user can do about the approval of a case. Up to nine queries."""
    steps = approvals.steps_for(request, user)
    if steps.decide and request.kind == Kind.ERASURE and (holds := scope_of(request.subject, []).holds()):
        return approvals.Steps(reject=True, why_not=str(SubjectHeld(holds)))
    return steps


def check_approval(request: SubjectRequest, typed: str) -> None:
    """Raises WrongKey, SubjectHeld and PreviewNeeded."""
    if not SubjectAlias.objects.filter(subject_id__in=request.subject.group_ids(), key=typed.strip()).exists():
        raise WrongKey
    refuse_held(request)
    require_preview(request, at_most=APPROVAL_AGE)


def reject_request(request: SubjectRequest, *, by: User, note: str = "") -> SubjectRequest:
    """Returns a request to who handles it, instead of approving it; or withdraws one's own. Raises WrongState,
    OwnRequest and ApprovalError.
    """
    with approvals.deciding(request, by=by):
        request = locked(request, State.AWAITING, by=by)
        approvals.reject(request, by=by)
        request.note(Code.SENT_BACK, by=by, text=note)
        SubjectRequest.objects.filter(pk=request.pk).update(state=State.CHECKED)
    request.refresh_from_db()
    return request


def has_preview(about: SubjectRequest | RequestBatch, *, at_most: timedelta = PREVIEW_AGE) -> bool:
    """True if there is a preview that is not older than this."""
    return about.previewed_at is not None and about.previewed_at >= now() - at_most


def require_preview(about: SubjectRequest | RequestBatch, *, at_most: timedelta = PREVIEW_AGE) -> None:
    """Raises PreviewNeeded."""
    if not has_preview(about, at_most=at_most):
        raise PreviewNeeded


def refuse_own(request: SubjectRequest, by: User | None) -> None:
    """Raises OwnRequest if the request is about this operator. Up to four queries."""
    if by is not None and is_about(request, by):
        raise OwnRequest


def refuse_held(request: SubjectRequest) -> None:
    if holds := scope_of(request.subject, []).holds():
        raise SubjectHeld(holds)


def cancel_request(request: SubjectRequest, *, note: str, by: User) -> SubjectRequest:
    """Ends a case before anything was erased. Raises AlreadyStarted, WrongState and OwnRequest."""
    request.refresh_from_db()
    refuse_own(request, by)
    seen_run = request.run_id
    if request.run is not None:
        try:
            runs.cancel_run(request.run, by=by)
        except runs.InvalidRunState as problem:
            request.refresh_from_db()
            has_begun = request.is_started or may_be_entered(request)
            raise (AlreadyStarted if has_begun else WrongState)(request) from problem
    with transaction.atomic():
        request = SubjectRequest.objects.select_for_update().get(pk=request.pk)
        was_approved = seen_run is None and request.run_id is not None
        if was_approved or (request.is_closed and request.state != State.CANCELLED):
            # Approved, or closed, a moment ago.
            raise WrongState(request)
        approvals.make_void(request, by=by)
        columns: dict[str, Any] = (
            {} if request.is_closed else {"state": State.CANCELLED, "closed_at": Now(), "locators": b""}
        )
        return changed(request, audit_events.REQUEST_CANCELLED, Code.CANCELLED, by=by, text=note, **columns)


@transaction.atomic
def refuse_request(request: SubjectRequest, *, reason: SubjectRequest.Refusal, note: str, by: User) -> SubjectRequest:
    """Ends a case without fulfilling it. Raises WrongState."""
    request = locked(request, State.RECEIVED, State.CHECKED, State.AWAITING, by=by)
    approvals.make_void(request, by=by)
    return changed(
        request,
        audit_events.REQUEST_REFUSED,
        Code.REFUSED,
        by=by,
        text=note,
        reason_code=reason,
        state=State.REFUSED,
        refusal=reason,
        closed_at=Now(),
        locators=b"",
    )


@transaction.atomic
def extend_request(request: SubjectRequest, *, until: date, note: str, by: User) -> SubjectRequest:
    """Extends the time once, by two months at most (GDPR article 12 (3)). Raises WrongState and NotLater."""
    request = locked(request, *State, by=by)
    if not may_extend(request):
        raise WrongState(request)
    check_extension(request, until)
    extend_locked([request], until=until, note=note, by=by)
    request.refresh_from_db()
    return request


def check_extension(about: SubjectRequest | RequestBatch, until: date) -> None:
    """Raises NotLater."""
    latest = latest_due_date(about)
    if not about.due_on < until <= latest:
        raise NotLater(latest)


def extend_locked(requests: Collection[SubjectRequest], *, until: date, note: str, by: User) -> None:
    """Extends the time of these cases, which are locked and may be extended. In the caller's transaction."""
    events = [audit.Columns(target=request, subject=request.subject_id) for request in requests]
    audit.record_each(audit_events.REQUEST_EXTENDED, events, by=by)
    RequestNote.objects.bulk_create(
        RequestNote(request=request, code=Code.EXTENDED, by=by, text=note) for request in requests
    )
    SubjectRequest.objects.filter(pk__in=[request.pk for request in requests]).update(
        due_on=until, first_due_on=F("due_on"), reminded=0
    )


def may_extend(about: SubjectRequest | RequestBatch) -> bool:
    """True once, and before the due date."""
    return not about.is_closed and about.first_due_on is None and about.due_on >= now().date()


def latest_due_date(about: SubjectRequest | RequestBatch) -> date:
    return due_date(about.received_on, EXTENDED_MONTHS)


@transaction.atomic
def comment(request: SubjectRequest, *, note: str, by: User) -> SubjectRequest:
    return changed(locked(request, *State), audit_events.REQUEST_COMMENTED, Code.COMMENT, by=by, text=note)


@transaction.atomic
def leave_out(request: SubjectRequest, step: ErasureStep, *, note: str, by: User) -> SubjectRequest:
    """Ends a step that waits for a store, by decision; the receipt names it. Raises WrongState."""
    request = locked(request, State.RUNNING, State.SCANNING, by=by)
    waiting = ErasureStep.objects.select_for_update(no_key=True, of=("self",)).filter(
        pk=step.pk, request=request, state=ErasureStep.State.WAITING
    )
    if not waiting:
        raise WrongState(request)
    # Its event first: it proves to the database who decides.
    request = changed(request, audit_events.STEP_LEFT_OUT, Code.LEFT_OUT, by=by, text=note)
    ErasureStep.objects.filter(pk=step.pk).update(
        state=ErasureStep.State.LEFT_OUT, cursor="", ended_at=Now(), changed_at=Now()
    )
    return request


def locked(request: SubjectRequest, *states: SubjectRequest.State, by: User | None = None) -> SubjectRequest:
    """The locked case. Raises WrongState if it is in none of these states, and OwnRequest if it is about `by`."""
    request = SubjectRequest.objects.select_for_update(of=("self",)).select_related("subject").get(pk=request.pk)
    if request.state not in states:
        raise WrongState(request)
    refuse_own(request, by)
    return request


def changed(
    request: SubjectRequest,
    event: EventType,
    code: RequestNote.Code,
    *,
    by: User | None,
    text: str = "",
    reason_code: str = "",
    **columns: Any,
) -> SubjectRequest:
    """Records the event, adds the note, changes the columns. In the caller's transaction."""
    audit.record(event, by=by, target=request, subject=request.subject_id, reason_code=reason_code)
    request.note(code, by=by, text=text)
    if columns:
        SubjectRequest.objects.filter(pk=request.pk).update(**columns)
    request.refresh_from_db()
    return request
