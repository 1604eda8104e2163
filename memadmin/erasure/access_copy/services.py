"""Verbs about copies: build, ask for locked sessions, approve these, leave a store out, link, fetch, hand over."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.models import Approval
from memadmin.accounts.content_access.rules import check_reading_limit
from memadmin.batching import batched
from memadmin.erasure import audit_events
from memadmin.erasure.access_copy import building, files
from memadmin.erasure.access_copy.keys import new_wrapped_key, unwrapped
from memadmin.erasure.access_copy.locked import COPY, KEPT, locked_now
from memadmin.erasure.access_copy.sealed_files import unsealed
from memadmin.erasure.models import AccessCopy, RequestNote, SubjectRequest
from memadmin.erasure.services import RequestError, WrongState, changed, locked
from memadmin.runs import services as runs
from sessions_app.audit_events import SESSION_COPIED
from sessions_app.models import SessionRecord

Kind, State, Code = SubjectRequest.Kind, SubjectRequest.State, RequestNote.Code
CopyState = AccessCopy.State

LINK_LIFETIME = timedelta(minutes=15)

EVENTS_AT_ONCE = 1_000


class NoCopy(RequestError):
    def __init__(self) -> None:
        super().__init__("There is no finished copy of this request, or no longer. Nothing was changed.")


class NothingLocked(RequestError):
    def __init__(self) -> None:
        super().__init__("No session of this person is locked. Build the copy without asking a second person.")


class FileMissing(RequestError):
    def __init__(self) -> None:
        super().__init__("The file is not on this machine. The web server and the worker must share MEMADMIN_DATA_DIR.")


class LinkUsed(RequestError):
    def __init__(self) -> None:
        super().__init__("This link was used already, or has expired. Make a new one.")


class NotFetched(RequestError):
    def __init__(self) -> None:
        super().__init__("The copy was not downloaded yet, so it cannot have been handed over.")


@transaction.atomic
def build_access_copy(request: SubjectRequest, *, by: User | None) -> AccessCopy:
    """Starts the run that builds the copy, without locked sessions. Raises WrongState."""
    request = locked(request, State.CHECKED)
    if request.kind != Kind.ACCESS:
        raise WrongState(request)
    return start(request, by=by)


def start(request: SubjectRequest, *, by: User | None, approval: Approval | None = None) -> AccessCopy:
    """Starts the run of a locked case; with the approval to include locked sessions, in its transaction."""
    run = runs.request_run(building.RUN_KIND, by=by)
    copy = AccessCopy.objects.create(
        request=request,
        run=run,
        approval=approval,
        key=new_wrapped_key(),
        expires_at=now() + settings.ACCESS_COPY_LIFETIME,
    )
    changed(request, audit_events.COPY_REQUESTED, Code.STARTED, by=by, state=State.RUNNING, run=run)
    return copy


@transaction.atomic
def request_full_copy(request: SubjectRequest, *, by: User, purpose: str = "") -> SubjectRequest:
    """Asks a second person for a copy with the locked sessions as they are now, for a stated purpose of reading. Where
    none is required (MEMADMIN_GRANTS_WITHOUT_APPROVAL) it is built at once.

    Raises WrongState, OwnRequest and NothingLocked.
    """
    request = locked(request, State.CHECKED, by=by)
    if request.kind != Kind.ACCESS:
        raise WrongState(request)
    now_locked = locked_now(request)
    if not now_locked["sessions"]:
        raise NothingLocked
    with approvals.asking(COPY, request, by=by, is_needed=settings.GRANT_APPROVAL):
        request.note(Code.REQUESTED, by=by)
        request.preview, request.previewed_at = {KEPT: now_locked, "purpose": purpose}, now()
        request.state = State.AWAITING
        request.save(update_fields=["preview", "previewed_at", "state"])
    if not settings.GRANT_APPROVAL:
        start(request, by=by, approval=request.approval)
    request.refresh_from_db()
    return request


def approve_full_copy(request: SubjectRequest, *, by: User, shown: str) -> AccessCopy:
    """Starts the copy with the locked sessions that were `shown`, as the second person. Raises WrongState and
    ApprovalError.
    """
    with approvals.deciding(request, by=by):
        request = locked(request, State.AWAITING)
        if request.kind != Kind.ACCESS:
            raise WrongState(request)
        approvals.approve(request, by=by, shown=shown)
        request.note(Code.APPROVED, by=by)
        return start(request, by=by, approval=request.approval)


@transaction.atomic
def leave_out_stores(request: SubjectRequest, *, note: str, by: User) -> AccessCopy:
    """Goes on without the stores that do not respond; the copy names them. Raises WrongState."""
    request = locked(request, State.RUNNING)
    copy = AccessCopy.objects.select_for_update().filter(request=request, state=CopyState.BUILDING).first()
    if copy is None or not copy.waits_for:
        raise WrongState(request)
    changed(request, audit_events.COPY_STORE_LEFT_OUT, Code.LEFT_OUT, by=by, text=note)
    AccessCopy.objects.filter(pk=copy.pk).update(left_out=[*copy.left_out, *copy.waits_for], waits_for=[])
    runs.resume_run(copy.run, by=by)
    copy.refresh_from_db()
    return copy


@transaction.atomic
def make_link(request: SubjectRequest, *, by: User) -> str:
    """The token of a new link, which is not stored; an earlier link ends. Raises NoCopy."""
    copy = ready_copy(request)
    token = secrets.token_urlsafe(32)
    audit.record(audit_events.COPY_LINK_MADE, by=by, target=request, subject=request.subject_id)
    AccessCopy.objects.filter(pk=copy.pk).update(token_digest=digest(token), token_until=now() + LINK_LIFETIME)
    return token


def locked_in(request: SubjectRequest) -> list[UUID]:
    """Ids of the locked sessions in the finished copy; none without one. One query."""
    ready = AccessCopy.objects.filter(request=request, state=CopyState.READY)
    return list(ready.values_list("locked", flat=True).first() or [])


def fetch(request: SubjectRequest, token: str, *, by: User, purpose: str = "") -> tuple[AccessCopy, Iterator[bytes]]:
    """The copy and the content of the ZIP file, once for each link: the events are committed before anything is shown.

    Its locked sessions count as opened by this person. Raises ReadingStopped if they are more than what is left of the
    reading limit, unless they alone are more than the whole limit: a legal duty stays possible, and all are counted.
    Also raises LinkUsed, NoCopy, FileMissing and SecretKeyChanged; the link stays unused then.
    """
    # Before the transaction: a refusal is recorded.
    check_reading_limit(by, locked_in(request), is_one=True)
    return fetch_within_limit(request, token, by=by, purpose=purpose)


@transaction.atomic
def fetch_within_limit(
    request: SubjectRequest, token: str, *, by: User, purpose: str
) -> tuple[AccessCopy, Iterator[bytes]]:
    copy = ready_copy(request)
    is_valid = secrets.compare_digest(copy.token_digest, digest(token))
    if not is_valid or copy.token_until is None or copy.token_until <= now():
        raise LinkUsed
    path = files.file_of(copy)
    if not path.is_file():
        raise FileMissing
    content = unsealed(path, unwrapped(copy.key))
    audit.record(audit_events.COPY_FETCHED, by=by, target=request, subject=request.subject_id)
    for batch in batched(copy.locked, EVENTS_AT_ONCE):
        opened: list[audit.Columns] = [
            {"target": record, "subject": record.subject_id, "reason_code": purpose}
            for record in SessionRecord.objects.filter(pk__in=batch)
        ]
        audit.record_each(SESSION_COPIED, opened, by=by)
    request.note(Code.COPY_FETCHED, by=by)
    AccessCopy.objects.filter(pk=copy.pk).update(token_digest="", token_until=None, fetched_at=Now(), fetched_by=by)
    return copy, content


@transaction.atomic
def hand_over(request: SubjectRequest, *, note: str, by: User) -> SubjectRequest:
    """Ends the case: the person has received the copy. The file stays until it expires.

    Raises WrongState, NoCopy and NotFetched.
    """
    request = locked(request, State.RUNNING)
    if request.kind != Kind.ACCESS:
        raise WrongState(request)
    if ready_copy(request).fetched_at is None:
        raise NotFetched
    return changed(
        request,
        audit_events.COPY_HANDED_OVER,
        Code.HANDED_OVER,
        by=by,
        text=note,
        state=State.COMPLETE,
        closed_at=Now(),
        locators=b"",
    )


def ready_copy(request: SubjectRequest) -> AccessCopy:
    """The finished copy, locked. Raises NoCopy."""
    copy = AccessCopy.objects.select_for_update().filter(request=request, state=CopyState.READY).first()
    if copy is None or copy.expires_at <= now():
        raise NoCopy
    return copy


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
