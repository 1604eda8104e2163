"""Proposals from the results of a distiller.

Statements already known for the subject are not proposed again, whatever was decided about them: a rejected statement
does not come back when it is repeated.

Summaries are memories of kind `summary` and pass the same gate: one for each session, and one for each subject, with
the key SUBJECT_SUMMARY, so that a prompt never contains two of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace

from django.db.models import Q
from django.utils.timezone import now

from memories_app.learning.distillers.types import (
    OPERATOR,
    Before,
    DistillationResult,
    DistilledMemory,
    OmissionReason,
    SessionMessage,
)
from memories_app.learning.proposing import ProposedQuote, propose_memory
from memories_app.models import Evidence, Memory
from memories_app.models.memories import LONGEST_QUOTE
from memories_app.models.querysets import MemoryQuerySet
from memories_app.services.refusals import Overtaken, Unproposable
from memories_app.tool_provenance import MOST_TOOLS
from sessions_app.models import SessionRecord, Subject

SUBJECT_SUMMARY = "subject_summary"
"""The key of the summary of a subject."""

FORGETTABLE = (Memory.Status.SUPERSEDED, Memory.Status.EXPIRED)
"""States of memories that may be proposed again; all other known statements are skipped."""

MOST_WAITING = 200
"""Maximum of waiting proposals about one subject; the same limit as for agents in the database."""


@dataclass(frozen=True, slots=True)
class Proposals:
    """Numbers of proposed, already known and omitted results of a distiller."""

    count: int
    known: int
    left_out: Counter[OmissionReason]


def propose_results(
    reading: DistillationResult,
    said: Sequence[SessionMessage],
    *,
    record: SessionRecord,
    subject: Subject,
    extractor: str,
) -> Proposals:
    """Proposes the results of reading a session. In the caller's transaction. Raises NothingLearnedHere.

    Known statements are counted, others left out by reason.
    """
    # Two distillers of one subject propose one after the other, so that each sees proposals of the other.
    Subject.objects.select_for_update(no_key=True).get(pk=subject.pk)
    known_words = {
        _plain(statement)
        for statement in Memory.objects.about(subject)
        .exclude(status__in=FORGETTABLE)
        .values_list("statement", flat=True)
    }
    count, known, left_out = 0, 0, Counter(reading.left_out)
    room = MOST_WAITING - Memory.objects.about(subject).filter(status=Memory.Status.PROPOSED).count()
    was_read = {one for one in said if not one.is_context}
    for found in reading.found:
        if reason := _omission(found, was_read):
            left_out[reason] += 1
        elif _plain(found.statement) in known_words:
            known += 1
        elif count >= room:
            left_out[OmissionReason.TOO_MANY] += 1
        elif _proposed(found, record, subject, extractor):
            known_words.add(_plain(found.statement))
            count += 1
        else:
            left_out[OmissionReason.UNFIT] += 1
    for was_proposed in _propose_summaries(record, subject, reading, said, known_words, extractor):
        if was_proposed:
            count += 1
        else:
            left_out[OmissionReason.UNFIT] += 1
    return Proposals(count, known, left_out)


def existing_summaries(record: SessionRecord, subject: Subject) -> Before:
    known = Memory.Status.APPROVED, *Memory.AWAITING
    of_session = _summaries_of(record).filter(status__in=known).newest_first().first()
    of_subject = _summaries_about(subject).filter(status__in=known).newest_first().first()
    return Before(of_session.statement if of_session else "", of_subject.statement if of_subject else "")


def _summaries_of(record: SessionRecord) -> MemoryQuerySet:
    of_session = Evidence.objects.filter(record_id=record.pk).values("memory")
    return Memory.objects.filter(pk__in=of_session, kind=Memory.Kind.SUMMARY).exclude(key=SUBJECT_SUMMARY)


def _summaries_about(subject: Subject) -> MemoryQuerySet:
    return Memory.objects.about(subject).filter(kind=Memory.Kind.SUMMARY, key=SUBJECT_SUMMARY)


def _omission(found: DistilledMemory, was_read: Container[SessionMessage]) -> OmissionReason | None:
    """Why a result must not be proposed; None if it may be."""
    if found.said not in was_read or not found.is_proven:
        return OmissionReason.UNPROVEN
    return OmissionReason.SECRET if found.has_secret else None


def _propose_summaries(
    record: SessionRecord,
    subject: Subject,
    reading: DistillationResult,
    said: Sequence[SessionMessage],
    known_words: Container[str],
    extractor: str,
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
        _proposed_summary(text, key, earlier, record, subject, extractor, replace(first, tools=tools))
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


def _plain(statement: str) -> str:
    return " ".join(statement.split()).strip(".!").casefold()
