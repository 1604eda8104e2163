"""Taking text out of sessions for good: asked for by a person, carried out by the worker, who may change agents' rows.

A redaction finds nothing where it was before. So one that was stopped anywhere is simply gone on with: each item is
compared with what was read, in the store's own order of locks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.timezone import now

from memadmin import audit
from sessions_app import audited
from sessions_app.audited import RedactReason
from sessions_app.models import Redaction, SessionRecord, Subject, TextSearch
from sessions_app.querysets import SessionRecordQuerySet
from sessions_app.redacting import Wanted
from sessions_app.services.copies import redact_copies
from sessions_app.services.redacting_sessions import Left, Outcome, redact_session
from sessions_app.stores import backend_for

REDACT = "sessions_app.redact_content"

WAITS_FOR = timedelta(hours=12)
"""How long the text of a redaction is kept where no worker carries it out."""

SLICE_SECONDS = 20.0
"""How long one redaction is worked on before it is another's turn."""

SESSIONS_A_PAGE = 100


@dataclass(frozen=True, slots=True)
class RedactionRequest:
    """What somebody wants to go, and why."""

    text: str = ""
    """Empty for all text of one item."""
    _: KW_ONLY
    reason: RedactReason
    explanation: str = ""
    takes_compactions: bool = False
    by: User | None


def redact_item(record: SessionRecord, item_id: str, request: RedactionRequest) -> Redaction:
    """Asks for all text of one item to go, or for the text of the request wherever it stands in it.

    Raises Unwanted, UnknownItem and StoreUnavailable.
    """
    stored = backend_for(record.store).item(record.session_id, item_id)
    return _ask(
        request,
        record=record,
        subject=record.subject,
        item_id=item_id,
        item_mark=mark_of(stored.raw),
        text=Wanted.parse(request.text).text if request.text else "",
        takes_all=not request.text,
    )


def redact_in_session(record: SessionRecord, request: RedactionRequest) -> Redaction:
    """Asks for a text to go from all items of a session. Raises Unwanted."""
    return _ask(request, record=record, subject=record.subject, text=Wanted.parse(request.text).text)


def redact_about(subject: Subject, request: RedactionRequest) -> Redaction:
    """Asks for a text to go from all sessions of a subject, in whatever store. Raises Unwanted."""
    return _ask(request, subject=subject, text=Wanted.parse(request.text).text)


@transaction.atomic
def _ask(request: RedactionRequest, *, record: SessionRecord | None = None, **columns: Any) -> Redaction:
    redaction = Redaction(
        record_id=record.pk if record else None,
        session_id=record.session_id if record else "",
        takes_compactions=request.takes_compactions,
        reason=request.reason.value,
        requested_by=request.by,
        expires_at=now() + WAITS_FOR,
        **columns,
    )
    audit.record(
        audited.REDACTION_REQUESTED,
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
    """Changes when a stored text does, and tells nothing about it."""
    return salted_hmac("sessions_app.redaction", raw.encode(errors="surrogatepass"), algorithm="sha256").hexdigest()


# --- carried out ------------------------------------------------------------------------------------------------------


def carry_out_redactions(*, seconds: float = SLICE_SECONDS) -> int:
    """Goes on with every redaction that has not ended, for so long with each; returns how many ended."""
    return sum(carry_out(redaction, seconds=seconds) for redaction in Redaction.objects.to_be_done())


def carry_out(redaction: Redaction, *, seconds: float | None = None) -> bool:
    """Goes on with one where it stopped; whether it has ended, and its text is forgotten.

    Without a limit, it waits for whoever is at it; with one, it leaves it to them.
    """
    with claim(redaction, waits=seconds is None) as is_ours:
        return is_ours and carry_on(redaction, seconds=seconds)


@contextmanager
def claim(redaction: Redaction, *, waits: bool) -> Iterator[bool]:
    """Keeps it to one worker, so that numbers are right; PostgreSQL lets go when that one dies."""
    function = "pg_advisory_lock" if waits else "pg_try_advisory_lock"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", [str(redaction.pk)])
        is_ours = cursor.fetchone()[0] is not False
    try:
        yield is_ours
    finally:
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [str(redaction.pk)])


def carry_on(redaction: Redaction, *, seconds: float | None) -> bool:
    redaction = Redaction.objects.select_related("subject", "requested_by").get(pk=redaction.pk)
    if redaction.ended_at:
        return True
    outcome = Outcome.read(redaction.report)
    if redaction.begun_at is None:
        if redaction.expires_at <= now():
            outcome.leave(Left.TOO_LATE, "")
            return end(redaction, outcome)
        Redaction.objects.filter(pk=redaction.pk).update(begun_at=now())
    began = monotonic()
    wanted = Wanted.parse(redaction.text) if redaction.text else None
    # At once, whatever keeps the sessions waiting; and in the end what was copied from them meanwhile.
    outcome.copies += redact_copies(redaction, sessions_of(redaction), wanted)
    away: set[int] = set()
    for record in sessions_left(redaction):
        if record.store_id in away:
            # Asked once a slice: each question costs seconds.
            outcome.sessions += 1
            outcome.leave(Left.AWAY, record.store.name)
        else:
            if not redact_session(redaction, record, wanted, outcome, is_same=is_same_item):
                away.add(record.store_id)
        redaction.done_until = [record.store_id, record.session_id]
        Redaction.objects.filter(pk=redaction.pk).update(done_until=redaction.done_until, report=outcome.as_report())
        if seconds is not None and monotonic() - began > seconds:
            return False
    outcome.copies += redact_copies(redaction, sessions_of(redaction), wanted)
    if wanted:
        outcome.searches += forget_searches(wanted)
    return end(redaction, outcome)


def is_same_item(redaction: Redaction, raw: str) -> bool:
    return constant_time_compare(redaction.item_mark, mark_of(raw))


def sessions_of(redaction: Redaction) -> SessionRecordQuerySet:
    """All that it is about, erased ones left out."""
    on_record = SessionRecord.objects.on_record()
    if redaction.record_id is not None:
        return on_record.filter(session_id=redaction.session_id, pk=redaction.record_id)
    assert redaction.subject
    return on_record.about(redaction.subject)


def sessions_left(redaction: Redaction) -> Iterator[SessionRecord]:
    """In an order in which nobody is passed over, however many come and go meanwhile."""
    ordered = sessions_of(redaction).select_related("store", "subject").order_by("store_id", "session_id")
    after = redaction.done_until
    while True:
        beyond = Q(store_id__gt=after[0]) | Q(store_id=after[0], session_id__gt=after[1]) if after else Q()
        page = list(ordered.filter(beyond)[:SESSIONS_A_PAGE])
        yield from page
        if len(page) < SESSIONS_A_PAGE:
            return
        after = [page[-1].store_id, page[-1].session_id]


def forget_searches(wanted: Wanted) -> int:
    """Searches that somebody made for the text, who looked where it leaked; returns how many."""
    gone = [search.pk for search in TextSearch.objects.all().iterator() if wanted.is_in(search.text)]
    TextSearch.objects.filter(pk__in=gone).delete()
    return len(gone)


@transaction.atomic
def end(redaction: Redaction, outcome: Outcome) -> bool:
    counters = {"items": outcome.items, "places": outcome.places, "left": outcome.left}
    is_about_subject = redaction.record_id is None
    if is_about_subject:
        counters["sessions"] = outcome.changed
    audit.record(
        audited.SUBJECT_REDACTED if is_about_subject else audited.REDACTION_ENDED,
        by=redaction.requested_by,
        target=redaction.subject if is_about_subject else redaction,
        subject=redaction.subject,
        outcome="failed" if outcome.left else "succeeded",
        counters=counters,
    )
    # An ended redaction knows neither what it was about in words nor what the item was.
    Redaction.objects.filter(pk=redaction.pk).update(ended_at=now(), text="", item_mark="", report=outcome.as_report())
    return True
