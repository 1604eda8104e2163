"""Distilling: reading sessions for what agents could remember, and proposing it. Nothing is learned without review.

Each session is read as a whole, and what is known of its subject already is not proposed again, whatever was decided
about it: a rejected statement does not come back because somebody says it twice.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import now

from memadmin import audit
from memories_app import audited
from memories_app.distilling.rules import RulesDistiller
from memories_app.distilling.saying import (
    OPERATOR,
    Distiller,
    Found,
    Nonsense,
    Reading,
    Said,
    TookTooLong,
    Unread,
    said_in,
)
from memories_app.models import Distillation, Evidence, Memory, Signal
from memories_app.services.learning import is_stopped
from memories_app.services.proposing import Quote, propose_memory
from memories_app.services.refusals import NothingLearnedHere, Unproposable
from sessions_app.encryption import sealing_of
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.subjects import standing_subject
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.sealed import sealed_backend_for

logger = logging.getLogger(__name__)

Outcome = Distillation.Outcome

LOOKED_BACK = timedelta(days=7)
"""Sessions that were quiet for longer are read by the command alone: a large history is not learned by surprise."""

FORGETTABLE = (Memory.Status.SUPERSEDED, Memory.Status.EXPIRED)
"""What was true once and may be true again; anything else that is known is not proposed anew."""

LONGEST_QUOTE = 4000


@dataclass(frozen=True, slots=True)
class Distilled:
    """The row, and what else came of it: what was known already, and what was left out as unproven or secret."""

    row: Distillation
    known: int = 0
    left_out: int = 0


@cache
def _distiller_named(name: str) -> Distiller:
    if name == "rules":
        return RulesDistiller()
    # Loads the SDK, which web processes do without.
    from memories_app.distilling.agent import AgentDistiller

    return AgentDistiller(name.removeprefix("agent:"))


def awaiting_distillation(*, quiet_since: datetime, active_since: datetime) -> QuerySet[SessionRecord]:
    """Sessions of known subjects that were written to since they were last read, the longest waiting first."""
    read = Distillation.objects.filter(record_id=OuterRef("pk"), read_up_to__gte=OuterRef("activity_count"))
    records = SessionRecord.objects.on_record().filter(
        ~Exists(read.exclude(outcome=Outcome.RUNNING)),
        subject__isnull=False,
        last_activity_at__gt=active_since,
        last_activity_at__lte=quiet_since,
    )
    if not settings.DISTIL_LOCKED:
        records = records.exclude(Q(is_sensitive=True) | Q(store__is_sensitive=True) | Q(is_encrypted=True))
    return records.order_by("last_activity_at", "pk")


def distil_quiet_sessions(*, limit: int = 100) -> int:
    """Reads what fell quiet within the last week, up to `limit` sessions of each store; returns how many were read."""
    if settings.DISTILLER == "none":
        return 0
    at, count = now(), 0
    waiting = awaiting_distillation(quiet_since=at - settings.DISTIL_AFTER, active_since=at - LOOKED_BACK)
    for store in SessionStore.objects.all():
        try:
            for record in waiting.filter(store=store).select_related("store", "subject")[:limit]:
                distil_session(record)
                count += 1
        except StoreUnavailable:
            logger.warning("store %s is away, nothing is learned from its sessions now", store.pk)
    return count


def distil_session(record: SessionRecord, *, distiller: Distiller | None = None) -> Distilled:
    """Reads a session and proposes what it finds. Raises StoreUnavailable, and then it counts as not read.

    What is written while it reads counts as not read. Whatever else goes wrong is the outcome of the row, and is not
    tried again before somebody says something more.
    """
    distiller = distiller or _distiller_named("rules" if settings.DISTILLER == "none" else settings.DISTILLER)
    row = Distillation.objects.create(
        record_id=record.pk, session_id=record.session_id, distiller=distiller.name, read_up_to=record.activity_count
    )
    subject = standing_subject(record.subject) if record.subject else None
    if subject is None or not _may_read(record) or is_stopped(subject):
        return _ended(row, record, Outcome.REFUSED, Reading())
    try:
        said = [*_said(record), *_remarks(record)]
        reading = distiller.read(said)
    except StoreUnavailable:
        row.delete()
        raise
    except Unread as problem:
        outcome = {Nonsense: Outcome.NONSENSE, TookTooLong: Outcome.TIMED_OUT}.get(type(problem), Outcome.FAILED)
        logger.warning("session %s was not distilled: %s", record.pk, problem.__cause__.__class__.__name__)
        return _ended(row, record, outcome, Reading(cost=problem.cost))
    try:
        return _propose(row, record, subject, reading, said)
    except NothingLearnedHere:
        # Somebody said so while the session was read.
        return _ended(row, record, Outcome.REFUSED, Reading(cost=reading.cost))


def _may_read(record: SessionRecord) -> bool:
    is_sealed = record.is_encrypted or bool(record.store.encryption_key)
    if not (record.is_locked or is_sealed):
        return True
    return settings.DISTIL_LOCKED and (not is_sealed or sealing_of(record.store).of_session(record.session_id).has_key)


def _said(record: SessionRecord) -> Iterable[Said]:
    backend = sealed_backend_for(record.store, opens=settings.DISTIL_LOCKED)
    return said_in(backend.every_item(record.session_id))


def _remarks(record: SessionRecord) -> Iterable[Said]:
    """What operators wrote about its items."""
    for signal in Signal.objects.filter(record_id=record.pk, kind=Signal.Kind.FEEDBACK).exclude(text=""):
        yield Said(signal.item_id, OPERATOR, signal.text, signal.created_at, signal.pk)


@transaction.atomic
def _propose(
    row: Distillation, record: SessionRecord, subject: Subject, reading: Reading, said: Sequence[Said]
) -> Distilled:
    # Two distillers of one subject propose one after the other, so that each sees what the other did.
    Subject.objects.select_for_update(no_key=True).get(pk=subject.pk)
    known_words = {
        _plain(statement)
        for statement in Memory.objects.about(subject)
        .exclude(status__in=FORGETTABLE)
        .values_list("statement", flat=True)
    }
    known, left_out = 0, reading.left_out
    with audit.recording(audited.SESSION_DISTILLED) as event:
        event.target, event.subject = record, subject
        for found in reading.found:
            if found.has_secret:
                left_out += 1
            elif _plain(found.statement) in known_words:
                known += 1
            elif _proposed(found, record, subject, row.distiller):
                known_words.add(_plain(found.statement))
                row.proposal_count += 1
            else:
                left_out += 1
        if reading.summary and said and _plain(reading.summary) not in known_words:
            row.proposal_count += _proposed_summary(reading.summary, record, subject, row.distiller, said[0])
        Signal.objects.filter(record_id=record.pk, distilled_at__isnull=True, created_at__lte=row.began_at).update(
            distilled_at=now()
        )
        _end(row, Outcome.DONE, reading)
        row.save()
        event.reason_code, event.counters = Outcome.DONE, _counters(row, known, left_out)
    return Distilled(row, known, left_out)


def _proposed(found: Found, record: SessionRecord, subject: Subject, extractor: str) -> bool:
    said = found.said
    source = {"user": Memory.Source.USER, OPERATOR: Memory.Source.OPERATOR}.get(said.speaker, Memory.Source.TOOL)
    try:
        propose_memory(
            found.statement,
            kind=found.kind,
            key=found.key,
            subject=subject,
            provenance=Memory.Provenance.EXPLICIT if found.is_explicit else Memory.Provenance.INFERRED,
            # What an assistant said may come from a tool or a page: no rule approves it.
            source=source,
            confidence=found.confidence,
            extractor=extractor,
            evidence=[_quote(record, said, found.quote)],
        )
    except Unproposable:
        return False
    return True


def _proposed_summary(summary: str, record: SessionRecord, subject: Subject, extractor: str, first: Said) -> bool:
    """One for each session: it changes the one that agents use, and waits for nobody's second thoughts."""
    of_session = Evidence.objects.filter(record_id=record.pk).values("memory")
    earlier = Memory.objects.filter(pk__in=of_session, kind=Memory.Kind.SUMMARY)
    if earlier.filter(status__in=Memory.AWAITING).exists():
        return False
    standing = earlier.filter(status=Memory.Status.APPROVED).newest_first().first()
    try:
        propose_memory(
            summary,
            kind=Memory.Kind.SUMMARY,
            subject=subject,
            # Words of a model about words of others: no rule approves it.
            source=Memory.Source.TOOL,
            extractor=extractor,
            replaces=standing,
            evidence=[_quote(record, first, first.text[:200])],
        )
    except Unproposable:
        return False
    return True


def _quote(record: SessionRecord, said: Said, text: str) -> Quote:
    return Quote(
        text[:LONGEST_QUOTE],
        record_id=record.pk,
        session_id=record.session_id,
        item_id=said.item_id,
        speaker=said.speaker,
        said_at=said.at,
        signal_id=said.signal_id,
    )


@transaction.atomic
def _ended(row: Distillation, record: SessionRecord, outcome: Outcome, reading: Reading) -> Distilled:
    _end(row, outcome, reading)
    audit.record(
        audited.SESSION_DISTILLED,
        target=record,
        subject=record.subject_id,
        reason_code=outcome,
        counters=_counters(row),
    )
    row.save()
    return Distilled(row)


def _end(row: Distillation, outcome: Outcome, reading: Reading) -> None:
    row.outcome, row.ended_at = outcome, now()
    row.model_calls = reading.cost.model_calls
    row.input_tokens, row.output_tokens = reading.cost.input_tokens, reading.cost.output_tokens


def _counters(row: Distillation, known: int = 0, left_out: int = 0) -> dict[str, int]:
    return {
        "proposed": row.proposal_count,
        "known": known,
        "left_out": left_out,
        "model_calls": row.model_calls,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    }


def _plain(statement: str) -> str:
    return " ".join(statement.split()).strip(".!").casefold()
