"""Distillation: extracts proposals of memories from sessions. Agents use them only after review.

A session is read once: the next distillation continues after the last item read, with a few items before it as context.
Notes on a session - operators' feedback, and ratings and outcomes with a comment - are read with it, and if they are
younger than its last distillation, they are a reason for another one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.timezone import now

from memadmin import audit
from memories_app import audit_events
from memories_app.learning.distilled_proposals import existing_summaries, propose_results
from memories_app.learning.distillers.rules import RulesDistiller
from memories_app.learning.distillers.types import (
    DistillationResult,
    Distiller,
    DistillingTimeout,
    Nonsense,
    SessionMessage,
    Unread,
)
from memories_app.learning.session_messages import NOTES, UnreadItems, last_reading, notes_on
from memories_app.learning.signals import is_stopped
from memories_app.models import Distillation, Signal
from memories_app.services.refusals import NothingLearnedHere
from sessions_app.encryption import sealing_of
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.services.subjects import merge_target
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable

logger = logging.getLogger(__name__)

Outcome = Distillation.Outcome

LOOKED_BACK = timedelta(days=7)
"""Sessions quiet for longer are only read by the command, so that a large history is not distilled unexpectedly."""

RECENTLY = timedelta(hours=1)
"""Period checked each minute; LOOKED_BACK is checked once an hour, in case a worker was stopped."""


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
        unread = UnreadItems(record, None if from_start else last_reading(record))
        said = [*unread.said(), *notes_on(record, all_of_them=unread.is_whole)]
        row.last_item_id, row.last_item_hash = unread.last
        reading = distiller.read(said, before=existing_summaries(record, subject))
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


@transaction.atomic
def _propose(
    row: Distillation,
    record: SessionRecord,
    subject: Subject,
    reading: DistillationResult,
    said: Sequence[SessionMessage],
) -> Distilled:
    """Proposes the results of a reading and ends its row. Raises NothingLearnedHere."""
    with audit.recording(audit_events.SESSION_DISTILLED) as event:
        event.target, event.subject = record, subject
        proposals = propose_results(reading, said, record=record, subject=subject, extractor=row.distiller)
        Signal.objects.filter(record_id=record.pk, distilled_at__isnull=True, created_at__lte=row.began_at).update(
            distilled_at=now()
        )
        _end(row, Outcome.DONE, reading)
        row.proposal_count = proposals.count
        row.left_out = {reason.value: count for reason, count in proposals.left_out.items()}
        row.save()
        event.reason_code, event.counters = Outcome.DONE, _counters(row, proposals.known)
    return Distilled(row, proposals.known)


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
