"""Distillation: extracts proposals of memories from sessions. Agents use them only after review.

A session is read once: the next distillation continues after the last item read, with a few items before it as context.
Notes on a session - operators' feedback, and ratings and outcomes with a comment - are read with it, and if they are
younger than its last distillation, they are a reason for another one.
Statements already known for the subject are not proposed again, whatever was decided about them: a rejected statement
does not come back when it is repeated.

Summaries are memories of kind `summary` and pass the same gate: one for each session, and one for each subject, with
the key SUBJECT_SUMMARY, so that a prompt never contains two of them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.timezone import now

from memadmin import audit
from memories_app import audit_events
from memories_app.learning.distillers.rules import RulesDistiller
from memories_app.learning.distillers.types import (
    OPERATOR,
    RATING,
    Before,
    DistillationResult,
    DistilledMemory,
    Distiller,
    DistillingTimeout,
    Nonsense,
    OmissionReason,
    SessionMessage,
    Unread,
    said_in,
)
from memories_app.learning.proposing import ProposedQuote, propose_memory
from memories_app.learning.signals import is_stopped
from memories_app.models import Distillation, Evidence, Memory, Signal
from memories_app.models.memories import LONGEST_QUOTE
from memories_app.models.querysets import MemoryQuerySet
from memories_app.services.refusals import NothingLearnedHere, Overtaken, Unproposable
from memories_app.tool_provenance import MOST_TOOLS
from sessions_app.encryption import sealing_of
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.services.subjects import merge_target
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable, UnknownItem
from sessions_app.stores.sealed import sealed_backend_for

logger = logging.getLogger(__name__)

Outcome = Distillation.Outcome

LOOKED_BACK = timedelta(days=7)
"""Sessions quiet for longer are only read by the command, so that a large history is not distilled unexpectedly."""

RECENTLY = timedelta(hours=1)
"""Period checked each minute; LOOKED_BACK is checked once an hour, in case a worker was stopped."""

CONTEXT_ITEMS = 20
"""Number of earlier items that a distiller gets as context."""

ITEMS_A_PAGE = 200

SUBJECT_SUMMARY = "subject_summary"
"""The key of the summary of a subject."""

FORGETTABLE = (Memory.Status.SUPERSEDED, Memory.Status.EXPIRED)
"""States of memories that may be proposed again; all other known statements are skipped."""

NOTES = (Signal.Kind.FEEDBACK, Signal.Kind.RATING, Signal.Kind.OUTCOME)
"""Signals whose text is read. The text of others is the user's own, and is read in the session."""

MIDDLING_RATING = 3
"""Rating from 1 to 5 that is neither good nor bad."""

MOST_WAITING = 200
"""Maximum of waiting proposals about one subject; the same limit as for agents in the database."""


@dataclass(frozen=True, slots=True)
class Distilled:
    """The row of a distillation, and the number of already known statements."""

    row: Distillation
    known: int = 0

    @property
    def left_out(self) -> int:
        return sum(self.row.left_out.values())


@cache
def _distiller_named(name: str) -> Distiller:
    if name == "rules":
        return RulesDistiller()
    # Loads the SDK, which web processes do not need.
    from memories_app.learning.distillers.agent import AgentDistiller

    return AgentDistiller(name.removeprefix("agent:"))


def awaiting_distillation(*, quiet_since: datetime, active_since: datetime) -> QuerySet[SessionRecord]:
    """Sessions with a subject and new items since their last distillation, the longest waiting first."""
    read = Distillation.objects.filter(record_id=OuterRef("pk"), read_up_to__gte=OuterRef("activity_count"))
    records = SessionRecord.objects.on_record().filter(
        ~Exists(read.exclude(outcome=Outcome.RUNNING)),
        subject__isnull=False,
        last_activity_at__gt=active_since,
        last_activity_at__lte=quiet_since,
    )
    return _readable(records).order_by("last_activity_at", "pk")


def with_unread_notes(*, quiet_since: datetime, given_since: datetime) -> QuerySet[SessionRecord]:
    """Sessions with a subject and a note that is younger than their last distillation, and given in this period."""
    read = Distillation.objects.filter(record_id=OuterRef("record_id"), began_at__gte=OuterRef("created_at"))
    notes = Signal.objects.filter(
        ~Exists(read.exclude(outcome=Outcome.RUNNING)),
        kind__in=NOTES,
        distilled_at__isnull=True,
        created_at__gt=given_since,
        created_at__lte=quiet_since,
    ).exclude(text="")
    # A session that is not quiet is read when it is, with its notes.
    records = SessionRecord.objects.on_record().filter(
        pk__in=notes.values("record_id"), subject__isnull=False, last_activity_at__lte=quiet_since
    )
    return _readable(records).order_by("last_activity_at", "pk")


def _readable(records: SessionRecordQuerySet) -> SessionRecordQuerySet:
    return records if settings.DISTIL_LOCKED else records.exclude(records.locked_q() | records.unreadable_q())


def distil_quiet_sessions(*, within: timedelta = LOOKED_BACK, limit: int = 100) -> int:
    """Distils sessions that became quiet or got a note `within` this time, and returns their number: up to `limit`
    of each store for each of the two reasons."""
    if settings.DISTILLER == "none":
        return 0
    at, count = now(), 0
    quiet_since = at - settings.DISTIL_AFTER
    reasons = (
        awaiting_distillation(quiet_since=quiet_since, active_since=quiet_since - within),
        with_unread_notes(quiet_since=quiet_since, given_since=quiet_since - within),
    )
    for store in SessionStore.objects.all():
        try:
            for waiting in reasons:
                for record in waiting.filter(store=store).select_related("store", "subject")[:limit]:
                    distil_session(record)
                    count += 1
        except StoreUnavailable:
            logger.warning("store %s is unavailable; its sessions are not distilled now", store.pk)
    return count


def distil_session(record: SessionRecord, *, distiller: Distiller | None = None, from_start: bool = False) -> Distilled:
    """Distils the new items of a session, or all, and proposes the results. Raises StoreUnavailable; then the session
    counts as not read.

    Items written meanwhile count as not read. Other failures are stored as the outcome of the row, and are not retried
    before the session has new items.
    """
    distiller = distiller or _distiller_named("rules" if settings.DISTILLER == "none" else settings.DISTILLER)
    row = Distillation.objects.create(
        record_id=record.pk, session_id=record.session_id, distiller=distiller.name, read_up_to=record.activity_count
    )
    subject = merge_target(record.subject) if record.subject else None
    if subject is None or not _may_read(record) or is_stopped(subject):
        return _ended(row, record, Outcome.REFUSED, DistillationResult())
    try:
        unread = _UnreadItems(record, None if from_start else _last_reading(record))
        said = [*unread.said(), *_notes(record, all_of_them=unread.is_whole)]
        row.last_item_id, row.last_item_hash = unread.last
        reading = distiller.read(said, before=_existing_summaries(record, subject))
    except SessionUnreadable:
        logger.warning("session %s cannot be read; it is distilled after its next change", record.pk)
        return _ended(row, record, Outcome.FAILED, DistillationResult())
    except StoreUnavailable:
        row.delete()
        raise
    except Unread as problem:
        outcome = {Nonsense: Outcome.NONSENSE, DistillingTimeout: Outcome.TIMED_OUT}.get(type(problem), Outcome.FAILED)
        logger.warning("session %s was not distilled: %s", record.pk, problem.__cause__.__class__.__name__)
        return _ended(row, record, outcome, DistillationResult(cost=problem.cost))
    except Exception as problem:
        # An error of the distiller, or a session that it cannot process: other sessions continue.
        logger.warning("session %s was not distilled: %s", record.pk, type(problem).__name__)
        return _ended(row, record, Outcome.FAILED, DistillationResult())
    try:
        return _propose(row, record, subject, reading, said)
    except NothingLearnedHere:
        # Learning was stopped while the session was read.
        return _ended(row, record, Outcome.REFUSED, DistillationResult(cost=reading.cost))


def _may_read(record: SessionRecord) -> bool:
    # A store with a key may have plain sessions, too; encrypted items among plain ones are skipped or decrypted.
    if not (record.is_locked or record.is_unreadable):
        return True
    has_key = not record.is_encrypted or sealing_of(record.store).of_session(record.session_id).has_key
    return settings.DISTIL_LOCKED and has_key


class _UnreadItems:
    """The items of a session after those read before, or all; `last` is the id of the last one with its digest, after
    all were read."""

    def __init__(self, record: SessionRecord, earlier: Distillation | None) -> None:
        self._backend = sealed_backend_for(record.store, opens=settings.DISTIL_LOCKED)
        self._session_id = record.session_id
        self._context: Container[str] = ()
        self.last = (earlier.last_item_id, earlier.last_item_hash) if earlier else ("", "")
        items = self._behind(earlier) if earlier else None
        self.is_whole = items is None
        self._items = self._backend.every_item(self._session_id) if items is None else items

    def said(self) -> Iterator[SessionMessage]:
        return said_in(self._noting(self._items), context=self._context)

    def _noting(self, items: Iterable[StoredItem]) -> Iterator[StoredItem]:
        for item in items:
            self.last = (item.id, _digest(item))
            yield item

    def _behind(self, earlier: Distillation) -> Iterator[StoredItem] | None:
        """Items after the earlier ones; None if the last item is missing or replaced: then all items are read."""
        try:
            page = self._backend.page_around(self._session_id, earlier.last_item_id, 2 * CONTEXT_ITEMS)
        except UnknownItem:
            return None
        ids = [item.id for item in page.items]
        place = ids.index(earlier.last_item_id) if earlier.last_item_id in ids else -1
        if place < 0 or _digest(page.items[place]) != earlier.last_item_hash:
            return None
        self._context = set(ids[: place + 1])
        return self._from(page.items)

    def _from(self, items: Sequence[StoredItem]) -> Iterator[StoredItem]:
        while items:
            yield from items
            items = self._backend.page_after(self._session_id, items[-1].position, ITEMS_A_PAGE).items


def _digest(item: StoredItem) -> str:
    return sha256(item.raw.encode(errors="surrogatepass")).hexdigest()


def _last_reading(record: SessionRecord) -> Distillation | None:
    done = Distillation.objects.filter(record_id=record.pk, outcome=Outcome.DONE).exclude(last_item_id="")
    return done.order_by("-began_at").first()


def _existing_summaries(record: SessionRecord, subject: Subject) -> Before:
    known = Memory.Status.APPROVED, *Memory.AWAITING
    of_session = _summaries_of(record).filter(status__in=known).newest_first().first()
    of_subject = _summaries_about(subject).filter(status__in=known).newest_first().first()
    return Before(of_session.statement if of_session else "", of_subject.statement if of_subject else "")


def _summaries_of(record: SessionRecord) -> MemoryQuerySet:
    of_session = Evidence.objects.filter(record_id=record.pk).values("memory")
    return Memory.objects.filter(pk__in=of_session, kind=Memory.Kind.SUMMARY).exclude(key=SUBJECT_SUMMARY)


def _summaries_about(subject: Subject) -> MemoryQuerySet:
    return Memory.objects.about(subject).filter(kind=Memory.Kind.SUMMARY, key=SUBJECT_SUMMARY)


def _notes(record: SessionRecord, *, all_of_them: bool) -> Iterator[SessionMessage]:
    """Notes on a session and its items, all or those since the last distillation."""
    signals = Signal.objects.filter(record_id=record.pk, kind__in=NOTES).exclude(text="").order_by("created_at", "pk")
    for signal in signals if all_of_them else signals.filter(distilled_at__isnull=True):
        speaker = OPERATOR if signal.kind == Signal.Kind.FEEDBACK else RATING
        yield SessionMessage(
            signal.item_id, speaker, signal.text, signal.created_at, signal.pk, verdict=_verdict(signal)
        )


def _verdict(signal: Signal) -> int:
    """-1 for bad, 1 for good, 0 for neither."""
    value = signal.value or 0
    if signal.kind != Signal.Kind.RATING or value <= 0:
        return value
    return -1 if value < MIDDLING_RATING else 1 if value > MIDDLING_RATING else 0


@transaction.atomic
def _propose(
    row: Distillation,
    record: SessionRecord,
    subject: Subject,
    reading: DistillationResult,
    said: Sequence[SessionMessage],
) -> Distilled:
    """Proposes the results of a reading and ends its row. Known statements are counted, others left out by reason."""
    # Two distillers of one subject propose one after the other, so that each sees proposals of the other.
    Subject.objects.select_for_update(no_key=True).get(pk=subject.pk)
    known_words = {
        _plain(statement)
        for statement in Memory.objects.about(subject)
        .exclude(status__in=FORGETTABLE)
        .values_list("statement", flat=True)
    }
    known, left_out = 0, Counter(reading.left_out)
    room = MOST_WAITING - Memory.objects.about(subject).filter(status=Memory.Status.PROPOSED).count()
    was_read = {one for one in said if not one.is_context}
    with audit.recording(audit_events.SESSION_DISTILLED) as event:
        event.target, event.subject = record, subject
        for found in reading.found:
            if reason := _omission(found, was_read):
                left_out[reason] += 1
            elif _plain(found.statement) in known_words:
                known += 1
            elif row.proposal_count >= room:
                left_out[OmissionReason.TOO_MANY] += 1
            elif _proposed(found, record, subject, row.distiller):
                known_words.add(_plain(found.statement))
                row.proposal_count += 1
            else:
                left_out[OmissionReason.UNFIT] += 1
        for was_proposed in _propose_summaries(row, record, subject, reading, said, known_words):
            if was_proposed:
                row.proposal_count += 1
            else:
                left_out[OmissionReason.UNFIT] += 1
        Signal.objects.filter(record_id=record.pk, distilled_at__isnull=True, created_at__lte=row.began_at).update(
            distilled_at=now()
        )
        _end(row, Outcome.DONE, reading)
        row.left_out = {reason.value: count for reason, count in left_out.items()}
        row.save()
        event.reason_code, event.counters = Outcome.DONE, _counters(row, known)
    return Distilled(row, known)


def _omission(found: DistilledMemory, was_read: Container[SessionMessage]) -> OmissionReason | None:
    """Why a result must not be proposed; None if it may be."""
    if found.said not in was_read or not found.is_proven:
        return OmissionReason.UNPROVEN
    return OmissionReason.SECRET if found.has_secret else None


def _propose_summaries(
    row: Distillation,
    record: SessionRecord,
    subject: Subject,
    reading: DistillationResult,
    said: Sequence[SessionMessage],
    known_words: Container[str],
) -> list[bool]:
    """Whether each new summary, of the session and of the subject, was proposed."""
    first = next((one for one in said if not one.is_context), None)
    if first is None:
        return []
    # A summary is derived from all messages.
    tools = tuple(dict.fromkeys(tool for one in said for tool in one.tools))[:MOST_TOOLS]
    summaries = (
        (reading.summary, "", _summaries_of(record)),
        (reading.subject_summary, SUBJECT_SUMMARY, _summaries_about(subject)),
    )
    return [
        _proposed_summary(text, key, earlier, record, subject, row.distiller, replace(first, tools=tools))
        for text, key, earlier in summaries
        if text and _plain(text) not in known_words
    ]


def _proposed(found: DistilledMemory, record: SessionRecord, subject: Subject, extractor: str) -> bool:
    said = found.said
    source = {"user": Memory.Source.USER, OPERATOR: Memory.Source.OPERATOR}.get(said.speaker, Memory.Source.TOOL)
    try:
        propose_memory(
            found.statement,
            kind=found.kind,
            key=found.key,
            subject=subject,
            provenance=Memory.Provenance.EXPLICIT if found.is_explicit else Memory.Provenance.INFERRED,
            # Words of an assistant may come from a tool or a page: no rule approves them.
            source=source,
            confidence=found.confidence,
            extractor=extractor,
            evidence=[_quote(record, said, found.quote)],
        )
    except Unproposable:
        return False
    return True


def _proposed_summary(
    summary: str,
    key: str,
    earlier: MemoryQuerySet,
    record: SessionRecord,
    subject: Subject,
    extractor: str,
    first: SessionMessage,
) -> bool:
    """Whether the summary was proposed, as a change of the approved one. It supersedes a waiting one, unless a reviewer
    has claimed that."""
    approved_summary = earlier.filter(status=Memory.Status.APPROVED).newest_first().first()
    try:
        summarized = propose_memory(
            summary,
            kind=Memory.Kind.SUMMARY,
            key=key,
            subject=subject,
            # Text of a model about text of others: no rule approves it.
            source=Memory.Source.TOOL,
            extractor=extractor,
            replaces=approved_summary,
            evidence=[_quote(record, first, first.text[:200])],
        )
    except (Unproposable, Overtaken):
        return False
    unread = Q(claimed_until__isnull=True) | Q(claimed_until__lt=now())
    waiting = earlier.filter(unread, status=Memory.Status.PROPOSED).exclude(pk=summarized.pk)
    Memory.objects.filter(pk__in=list(waiting.values_list("pk", flat=True))).update(
        status=Memory.Status.SUPERSEDED, decided_at=now()
    )
    return True


def _quote(record: SessionRecord, said: SessionMessage, text: str) -> ProposedQuote:
    return ProposedQuote(
        text[:LONGEST_QUOTE],
        record_id=record.pk,
        session_id=record.session_id,
        item_id=said.item_id,
        speaker=said.speaker,
        said_at=said.at,
        signal_id=said.signal_id,
        tools=said.tools,
        said_by_user=said.speaker == "user" and said.signal_id is None,
    )


@transaction.atomic
def _ended(row: Distillation, record: SessionRecord, outcome: Outcome, reading: DistillationResult) -> Distilled:
    _end(row, outcome, reading)
    audit.record(
        audit_events.SESSION_DISTILLED,
        target=record,
        subject=record.subject_id,
        reason_code=outcome,
        counters=_counters(row),
    )
    row.save()
    return Distilled(row)


def _end(row: Distillation, outcome: Outcome, reading: DistillationResult) -> None:
    row.outcome, row.ended_at = outcome, now()
    row.model_calls = reading.cost.model_calls
    row.input_tokens, row.output_tokens = reading.cost.input_tokens, reading.cost.output_tokens


def _counters(row: Distillation, known: int = 0) -> dict[str, int]:
    return {
        "proposed": row.proposal_count,
        "known": known,
        "left_out": sum(row.left_out.values()),
        "model_calls": row.model_calls,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
    }


def _plain(statement: str) -> str:
    return " ".join(statement.split()).strip(".!").casefold()
