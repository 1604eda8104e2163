"""Redaction: removes a text from sessions for good. Requested by a person, done as a run by the worker.

A redaction finds nothing in a session that it has redacted, so repeating one that was interrupted is safe: each item is
compared with what was read, in the store's own order of locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.timezone import now

from memadmin import audit
from memadmin.runs.engine import Lease
from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from sessions_app import audit_events
from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, Subject, TextSearch
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.redaction import TextToRedact
from sessions_app.redaction.derived_copies import redact_copies
from sessions_app.redaction.sessions import LeftReason, RedactionOutcome, redact_session
from sessions_app.stores import backend_for

REDACT = "sessions_app.redact_content"

RUN_KIND = "redaction"

WAITS_FOR = timedelta(hours=12)
"""Time for which the text of a redaction is kept if no worker carries it out."""

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
    redaction = Redaction(
        run=request_run(RUN_KIND, by=request.by),
        record_id=record.pk if record else None,
        session_id=record.session_id if record else "",
        takes_compactions=request.takes_compactions,
        reason=request.reason.value,
        requested_by=request.by,
        expires_at=now() + WAITS_FOR,
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
    return redaction


def state_of_item(record: SessionRecord, item_id: str) -> str:
    """Changes when the item does. Raises UnknownItem and StoreUnavailable."""
    return mark_of(backend_for(record.store).item(record.session_id, item_id).raw)


def mark_of(raw: str) -> str:
    """A value that changes with the stored text, and reveals nothing about it."""
    return salted_hmac("sessions_app.redaction", raw.encode(errors="surrogatepass"), algorithm="sha256").hexdigest()


def redactions() -> QuerySet[Redaction]:
    """Redactions with subject and requester, without the password hash, which the worker may not read."""
    return Redaction.objects.select_related("subject", "requested_by").defer("requested_by__password")


# --- carried out ------------------------------------------------------------------------------------------------------


def work(lease: Lease) -> None:
    """Redacts all sessions, one after the other, and then copies that were made of them meanwhile.

    Raises what the lease raises.
    """
    redaction = redactions().get(run=lease.run)
    if not begin(lease, redaction):
        return
    target_text = TextToRedact.parse(redaction.text) if redaction.text else None
    # At once, whatever keeps the sessions waiting.
    redact_copies(lease, redaction, sessions_of(redaction), target_text)
    away: set[int] = set()
    for record in sessions_left(redaction, lease.run.cursor["after"]):
        if record.store_id in away:
            # Asked once a slice: each question costs seconds.
            outcome = RedactionOutcome(sessions=1)
            outcome.leave(LeftReason.AWAY, record.store.name)
        else:
            outcome = redact_session(lease, redaction, record, target_text, is_same=is_same_item)
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
    """Writes the first cursor and the estimate. False, with an exception on the run, when it is too late."""
    if lease.run.cursor:
        return True
    is_too_late = redaction.expires_at <= now()
    with lease.chunk() as run:
        if is_too_late:
            run.add_exception(LeftReason.TOO_LATE.value)
        else:
            run.cursor, run.total = {"after": []}, sessions_of(redaction).count()
    return not is_too_late


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
    # An ended redaction has neither the words nor the item.
    Redaction.objects.filter(pk=redaction.pk).update(ended_at=now(), text="", item_mark="")
