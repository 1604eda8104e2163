"""Redaction: removes a text from sessions for good. Requested by a person, done as a run by the worker.

A redaction finds nothing in a session that it has redacted, so repeating one that was interrupted is safe: each item is
compared with what was read, in the store's own order of locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import constant_time_compare
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.kinds import ApprovalKind, declare
from memadmin.accounts.approvals.services import ApprovalError
from memadmin.accounts.mails import mail_those_with
from memadmin.runs.engine import Lease, Wait
from memadmin.runs.models import Run
from memadmin.runs.services import cancel_run, request_run, wake
from sessions_app import audit_events
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, Subject, TextSearch
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.redaction import TextToRedact
from sessions_app.redaction.derived_copies import redact_copies
from sessions_app.redaction.outcome import LeftReason, RedactionOutcome
from sessions_app.redaction.previews import TYPED_ABOVE, RedactionPreview
from sessions_app.redaction.sessions import redact_session
from sessions_app.redaction.shown import ShownItems, mark_of
from sessions_app.stores import backend_for

REDACT = "sessions_app.redact_content"

RUN_KIND = "redaction"

WAITS_FOR = timedelta(hours=12)
"""Time for which the text of a redaction is kept if no worker carries it out."""

AWAITS_APPROVAL = "Another person has to approve the redaction."

SESSIONS_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class RedactionRequest:
    """Text to remove, and the reason."""

    text: str = ""
    """Empty for all text of one item."""
    _: KW_ONLY
    reason: RedactReason
    explanation: str = ""
    takes_compactions: bool = False
    by: User | None
    preview: RedactionPreview | None = None
    """Preview of the requester: nothing else is redacted. None for a command, which redacts the text everywhere."""
    typed: str = ""
    """The confirmation of a large redaction, see `confirmation`."""


class RedactionError(ApprovalError):
    """A redaction, or its approval, cannot be done. Nothing was changed."""


class ConfirmationMismatch(RedactionError):
    def __init__(self, wanted: str) -> None:
        super().__init__(f"Type “{wanted}” to confirm.")


def shown_of(redaction: Redaction) -> dict[str, Any]:
    """Values that a decision is about. No query."""
    names = ("record_id", "item_id", "item_mark", "subject_id", "shown", "shown_places")
    return {name: getattr(redaction, name) for name in (*names, "text", "takes_all", "takes_compactions", "reason")}


REDACTION = declare(
    ApprovalKind(
        "redaction",
        REDACT,
        shown_of,
        waiting="large redactions",
        page="sessions:redactions",
        facts="The second person reads each place.",
        symbol="eraser",
        answer_within=WAITS_FOR,
    )
)


def confirmation(places: int) -> str:
    """The text that is typed to confirm the redaction of so many places."""
    return f"redact {places}" if places else "redact"


def must_be_typed(preview: RedactionPreview, *, takes_compactions: bool) -> bool:
    """Whether the requester types the number of places: above TYPED_ABOVE, or if more is redacted than was shown."""
    return preview.has_unseen or preview.size(takes_compactions=takes_compactions) > TYPED_ABOVE


def needs_second_person(preview: RedactionPreview, *, takes_compactions: bool) -> bool:
    """Whether a second person has to approve: above MEMADMIN_REDACT_ALONE_PLACES, or if it is not known how many."""
    return preview.has_unseen or preview.size(takes_compactions=takes_compactions) > settings.REDACT_ALONE_PLACES


def redact_item(record: SessionRecord, item_id: str, request: RedactionRequest) -> Redaction:
    """Requests removal of all text of one item, or of the request's text wherever it occurs in it.

    Raises InvalidText, UnknownItem and StoreUnavailable.
    """
    stored = backend_for(record.store).item(record.session_id, item_id)
    return _ask(
        request,
        record=record,
        subject=record.subject,
        item_id=item_id,
        item_mark=mark_of(stored.raw),
        text=TextToRedact.parse(request.text).text if request.text else "",
        takes_all=not request.text,
    )


def redact_in_session(record: SessionRecord, request: RedactionRequest) -> Redaction:
    """Requests removal of a text from all items of a session. Raises InvalidText."""
    return _ask(request, record=record, subject=record.subject, text=TextToRedact.parse(request.text).text)


def redact_about(subject: Subject, request: RedactionRequest) -> Redaction:
    """Requests removal of a text from all sessions of a subject, in all stores. Raises InvalidText."""
    return _ask(request, subject=subject, text=TextToRedact.parse(request.text).text)


@transaction.atomic
def _ask(request: RedactionRequest, *, record: SessionRecord | None = None, **columns: Any) -> Redaction:
    expires_at = now() + WAITS_FOR
    needs_approval = False
    if (preview := request.preview) is not None:
        places = preview.size(takes_compactions=request.takes_compactions)
        if must_be_typed(preview, takes_compactions=request.takes_compactions):
            check_typed(request.typed, places)
        needs_approval = needs_second_person(preview, takes_compactions=request.takes_compactions)
        columns |= {"is_limited": True, "shown": preview.shown.as_json(), "shown_places": places}
    # Until it is approved the run waits for its end; then it ends by itself.
    waits = {"retry_at": expires_at, "reason": AWAITS_APPROVAL} if needs_approval else {}
    redaction = Redaction(
        run=request_run(RUN_KIND, by=request.by, **waits),
        record_id=record.pk if record else None,
        session_id=record.session_id if record else "",
        takes_compactions=request.takes_compactions,
        reason=request.reason.value,
        requested_by=request.by,
        expires_at=expires_at,
        **columns,
    )
    audit.record(
        audit_events.REDACTION_REQUESTED,
        by=request.by,
        target=redaction,
        subject=redaction.subject,
        shown=[record] if record else (),
        reason_code=request.reason.value,
        details={"reason": request.explanation} if request.explanation else None,
    )
    redaction.save()
    if needs_approval:
        approvals.ask(REDACTION, redaction, by=request.by)
        transaction.on_commit(partial(mail_those_who_approve, redaction))
    return redaction


def check_typed(typed: str, places: int) -> None:
    """Raises ConfirmationMismatch."""
    wanted = confirmation(places)
    if " ".join(typed.split()).lower() != wanted:
        raise ConfirmationMismatch(wanted)


def mail_those_who_approve(redaction: Redaction) -> None:
    """Does nothing if a command approved it in the same transaction."""
    if not Redaction.objects.filter(pk=redaction.pk, approval__decision="").exists():
        return
    mail_those_with(
        REDACT,
        title="a redaction awaits approval",
        sentence="A redaction of many places was requested. Another person than the requester has to approve it.",
        path=redaction.get_absolute_url(),
    )


# --- approved ---------------------------------------------------------------------------------------------------------


def approve_redaction(redaction: Redaction, *, by: User, typed: str, shown: str) -> Redaction:
    """Approves a redaction, as it was `shown`, as the second person; it begins at once. Raises ApprovalError, of it
    ConfirmationMismatch.
    """
    with approvals.deciding(redaction, by=by):
        redaction = locked(redaction)
        check = partial(check_typed, typed, redaction.shown_places)
        approvals.approve(redaction, by=by, shown=shown, check=check)
        Run.objects.filter(pk=redaction.run_id).update(retry_at=None, reason="")
        wake(redaction.run)
    return redaction


def decline_redaction(redaction: Redaction, *, by: User) -> None:
    """Ends a redaction that awaits approval, and deletes its text; its requester may do that, too.

    Raises ApprovalError, and as the run does.
    """
    with approvals.deciding(redaction, by=by):
        redaction = locked(redaction)
        approvals.reject(redaction, by=by)
        cancel_run(redaction.run, by=by)


def locked(redaction: Redaction) -> Redaction:
    """The redaction with its run, both locked, the run first as everywhere."""
    run = Run.objects.select_for_update(no_key=True).get(pk=redaction.run_id)
    redaction = Redaction.objects.with_people().select_for_update(of=("self",)).get(pk=redaction.pk)
    redaction.run = run
    return redaction


def require_item(record: SessionRecord, item_id: str) -> None:
    """Raises UnknownItem and StoreUnavailable."""
    backend_for(record.store).item(record.session_id, item_id)


def redactions() -> QuerySet[Redaction]:
    """Redactions with subject and requester, without the password hash, which the worker may not read."""
    people = ("requested_by", "approval__asked_by", "approval__decided_by")
    found = Redaction.objects.select_related("subject", *people)
    return found.defer(*(f"{person}__password" for person in people))


# --- carried out ------------------------------------------------------------------------------------------------------


def work(lease: Lease) -> None:
    """Redacts all sessions, one after the other, and then copies that were made of them meanwhile.

    Raises what the lease raises.
    """
    redaction = redactions().get(run=lease.run)
    if not begin(lease, redaction):
        return
    target_text = TextToRedact.parse(redaction.text) if redaction.text else None
    shown = ShownItems.from_json(redaction.shown) if redaction.is_limited else None
    # At once, whatever keeps the sessions waiting.
    redact_copies(lease, redaction, sessions_of(redaction), target_text)
    away: set[int] = set()
    for record in sessions_left(redaction, lease.run.cursor["after"]):
        if record.store_id in away:
            # Asked once a slice: each question costs seconds.
            outcome = RedactionOutcome(sessions=1)
            outcome.leave(LeftReason.AWAY, record.store.name)
        else:
            outcome = redact_session(lease, redaction, record, target_text, is_same=is_same_item, shown=shown)
            if outcome.reasons[LeftReason.AWAY.value, record.store.name]:
                away.add(record.store_id)
        with lease.chunk() as run:
            outcome.add_to(run)
            run.cursor = {"after": [record.store_id, record.session_id]}
        lease.checkpoint()
    redact_copies(lease, redaction, sessions_of(redaction), target_text)
    with lease.chunk() as run:
        run.count(searches=forget_searches(target_text))


def begin(lease: Lease, redaction: Redaction) -> bool:
    """Writes the first cursor and the estimate. False, with an exception on the run, when it is too late.

    Raises Wait while a second person has to approve.
    """
    if lease.run.cursor:
        return True
    is_too_late = redaction.expires_at <= now()
    if redaction.is_awaiting and not is_too_late:
        raise Wait(AWAITS_APPROVAL, retry_after=redaction.expires_at - now())
    is_approved = redaction.approval is None or approvals.is_as_approved(REDACTION, redaction)
    with lease.chunk() as run:
        if not is_approved:
            run.add_exception(LeftReason.NOT_APPROVED.value)
        elif is_too_late:
            run.add_exception(LeftReason.TOO_LATE.value)
        else:
            run.cursor, run.total = {"after": []}, sessions_of(redaction).count()
    return is_approved and not is_too_late


def is_same_item(redaction: Redaction, raw: str) -> bool:
    return constant_time_compare(redaction.item_mark, mark_of(raw))


def sessions_of(redaction: Redaction) -> SessionRecordQuerySet:
    """All sessions of the redaction without erased ones."""
    on_record = SessionRecord.objects.on_record()
    if redaction.record_id is not None:
        return on_record.filter(session_id=redaction.session_id, pk=redaction.record_id)
    assert redaction.subject
    return on_record.about(redaction.subject)


def sessions_left(redaction: Redaction, after: list[Any]) -> Iterator[SessionRecord]:
    """Sessions after a store and a session id, in an order that misses none, however many come and go meanwhile."""
    ordered = sessions_of(redaction).select_related("store", "subject").order_by("store_id", "session_id")
    while True:
        beyond = Q(store_id__gt=after[0]) | Q(store_id=after[0], session_id__gt=after[1]) if after else Q()
        page = list(ordered.filter(beyond)[:SESSIONS_A_PAGE])
        yield from page
        if len(page) < SESSIONS_A_PAGE:
            return
        after = [page[-1].store_id, page[-1].session_id]


def forget_searches(target_text: TextToRedact | None) -> int:
    """Deletes stored searches of all users that have a part of the text; returns their number.

    Without a text the whole text of an item was removed, and is not known any more: then all searches are deleted. They
    expire within hours anyway, and cost a user a few words to type.
    """
    gone = [
        search.pk
        for search in TextSearch.objects.all().iterator()
        if target_text is None or target_text.has_part_in(search.text)
    ]
    TextSearch.objects.filter(pk__in=gone).delete()
    return len(gone)


def finish(run: Run) -> None:
    """Records the outcome and deletes the text, in the transaction in which the run ends, in whatever state."""
    redaction = redactions().get(run=run)
    outcome = RedactionOutcome.of(run)
    counters = {"items": outcome.items, "places": outcome.places, "left": outcome.left}
    is_about_subject = redaction.record_id is None
    if is_about_subject:
        counters["sessions"] = outcome.changed
    is_whole = run.state == Run.State.COMPLETE
    audit.record(
        audit_events.SUBJECT_REDACTED if is_about_subject else audit_events.REDACTION_ENDED,
        by=redaction.requested_by,
        target=redaction.subject if is_about_subject else redaction,
        subject=redaction.subject,
        outcome="succeeded" if is_whole else "failed",
        counters=counters,
    )
    approvals.make_void(redaction)
    # An ended redaction has neither the words nor the items.
    Redaction.objects.filter(pk=redaction.pk).update(ended_at=now(), text="", item_mark="", shown={})
