"""Rows of a person's stored data for the files of a copy: plain values by plain words.

Names of employees do not occur: a person of the staff has a number within the copy, and the roles. Text that was said
in sessions of other people is left out. Nothing is masked: it is the person's own data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When

from memadmin.accounts.purposes import Purpose
from memadmin.audit.log.types import known
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.erasure.scope import SubjectScope
from memadmin.web.paging import in_batches
from memories_app.models import Evidence, Memory, MemoryVersion, Recall, RecalledMemory, Review, Signal
from sessions_app.audit_events import RevealReason
from sessions_app.models import SessionRecord, SubjectAlias

Row = dict[str, Any]

ROWS_AT_ONCE = 200

READING = (
    *("session.viewed", "session.followed", "session.decrypted", "session.downloaded", "session.revealed"),
    "session.copied",
    *("session.listed", "item.viewed", "item.downloaded", "search.shown", "subject.viewed", "subject.listed"),
    *("memory.viewed", "memory.listed", "memory.exported", "recall.viewed", "recall.previewed"),
    *("access.copy_built", "access.copy_fetched"),
)
"""Types of audit events of people who saw, or could see, data of the person."""

PURPOSES = dict(RevealReason.choices) | dict(Purpose.choices)

LEFT_OUT = "(from a locked session: left out)"

ANOTHERS = "(from a session of another person: left out)"


@dataclass(frozen=True)
class Listing:
    """One file of rows, as JSON and as a page."""

    name: str
    title: str
    intro: str
    rows: Callable[[SubjectScope, CopyContext], Iterator[Row]]


@dataclass
class CopyContext:
    """Context of all files of a copy: ids of locked sessions that are left out, and numbers in place of the names of
    staff, in the order in which the people occur.
    """

    left_out: Container[UUID | str | None] = frozenset()
    """Ids of these sessions, by which rows refer to them: those of their records, and those in their stores."""
    names: dict[int, str] = field(default_factory=dict)

    def called(self, user_id: int | None) -> str:
        """One query for each new person, of whom there are few."""
        if user_id is None:
            return "a person whose account was deleted"
        if user_id not in self.names:
            # The worker may not read whole rows of accounts.
            roles = User.groups.through.objects.filter(user_id=user_id).values_list("group__name", flat=True)
            self.names[user_id] = f"staff member {len(self.names) + 1} ({', '.join(sorted(roles)) or 'no role'})"
        return self.names[user_id]

    def text_of(self, row: Any, text: str) -> str:
        """The text of a row of `said`, if its session is in the copy."""
        if not row.is_own:
            return ANOTHERS
        return LEFT_OUT if text and (row.record_id or row.session_id) in self.left_out else text


def sessions(scope: SubjectScope) -> QuerySet[SessionRecord]:
    """All sessions in the order of their numbers in the copy."""
    return scope.records().select_related("store").order_by("registered_at", "pk")


def person(scope: SubjectScope) -> Row:
    """The ids under which the person is known."""
    aliases = SubjectAlias.objects.filter(subject_id__in=scope.group)
    return {
        "ids": [{"kind": alias.get_kind_display(), "id": alias.key} for alias in aliases],
        "known_since": scope.subject.created_at,
    }


def session_row(record: SessionRecord) -> Row:
    return {
        "session": "" if record.is_forgotten else record.session_id,
        "place": record.store.name,
        "registered_at": record.registered_at,
        "last_activity_at": record.last_activity_at,
        "agent": record.agent,
        "ticket": record.ticket,
        "labels": list(record.labels),
        "is_encrypted": record.is_encrypted,
        "is_locked_for_staff": record.is_locked,
        "erased_at": record.erased_at,
    }


# --- what was learned, and what came of it ----------------------------------------------------------------------------


def memories(scope: SubjectScope, context: CopyContext) -> Iterator[Row]:
    """Every memory about the person, whatever became of it, with versions and evidence. Three queries for a batch."""
    for batch in by_key(Memory.objects.filter(subject_id__in=scope.group)):
        keys = [memory.pk for memory in batch]
        versions = by_memory(MemoryVersion.objects.filter(memory__in=keys).order_by("number"))
        evidence = by_memory(said(scope, Evidence.objects.filter(memory__in=keys)).order_by("version", "pk"))
        for memory in batch:
            yield {
                "id": memory.pk,
                "statement": memory.statement,
                "kind": memory.get_kind_display(),
                "topic": memory.key,
                "status": memory.get_status_display(),
                "data": memory.data,
                "for_agents": list(memory.agents) or "all",
                "learned_from": memory.get_source_display(),
                "how": memory.get_provenance_display(),
                "confidence": memory.confidence,
                "proposed_at": memory.proposed_at,
                "decided_at": memory.decided_at,
                "valid_from": memory.valid_from,
                "valid_until": memory.valid_until,
                "versions": [
                    {
                        "number": version.number,
                        "statement": version.statement,
                        "data": version.data,
                        "written_at": version.created_at,
                        "erased_at": version.erased_at,
                    }
                    for version in versions[memory.pk]
                ],
                "evidence": [
                    {
                        "quote": context.text_of(quote, quote.quote),
                        "speaker": quote.speaker,
                        "said_at": quote.said_at,
                        "session": quote.session_id if quote.is_own else "",
                        "version": quote.version,
                    }
                    for quote in evidence[memory.pk]
                ],
            }


def told_to_agents(scope: SubjectScope, context: CopyContext) -> Iterator[Row]:
    """Rows of memories that agents used in runs with the person. Three queries for a batch."""
    about = Q(subject_id__in=scope.group) | Q(subject__isnull=True) & scope.of_sessions()
    for batch in by_key(said(scope, Recall.objects.filter(about))):
        used_rows = RecalledMemory.objects.filter(recall__in=[recall.pk for recall in batch])
        rows = list(used_rows.select_related("memory").order_by("place", "pk"))
        versions = MemoryVersion.objects.filter(memory__in={row.memory_id for row in rows if row.memory_id})
        texts = {(version.memory_id, version.number): version.statement for version in versions}
        used: dict[UUID, list[Row]] = defaultdict(list)
        for row in rows:
            used[row.recall_id].append(
                {
                    "place": row.place,
                    "statement": statement_told(scope, row, texts),
                    "memory": row.memory_id if row.memory and row.memory.subject_id in scope.group else None,
                    "version": row.version,
                }
            )
        for recall in batch:
            yield {
                "at": recall.recalled_at,
                "agent": recall.agent,
                "session": recall.session_id if recall.is_own else "",
                "told": used[recall.pk],
            }


def statement_told(scope: SubjectScope, row: RecalledMemory, texts: Mapping[tuple[UUID, int], str]) -> str:
    """The text of the version that was used."""
    if row.memory is None or row.memory_id is None:
        return "(deleted since)"
    if row.memory.subject_id is not None and row.memory.subject_id not in scope.group:
        return "(about another person: left out)"
    return texts.get((row.memory_id, row.version), "") or "(erased since)"


def decisions(scope: SubjectScope, context: CopyContext) -> Iterator[Row]:
    """Decisions about the memories."""
    reviews = Review.objects.filter(memory__subject_id__in=scope.group).select_related("rule")
    for batch in by_key(reviews):
        for review in batch:
            yield {
                "memory": review.memory_id,
                "decision": review.get_decision_display(),
                "by": "an automatic rule" if review.rule_id else context.called(review.reviewer_id),
                "reason": review.reason_code,
                "note": review.note,
                "text_was_edited": review.was_edited,
                "decided_at": review.decided_at,
                "undone_at": review.undone_at,
            }


def signals(scope: SubjectScope, context: CopyContext) -> Iterator[Row]:
    """Corrections, wishes and ratings."""
    about = Q(subject_id__in=scope.group) | Q(subject__isnull=True) & scope.of_sessions()
    for batch in by_key(said(scope, Signal.objects.filter(about))):
        for signal in batch:
            yield {
                "kind": signal.get_kind_display(),
                "value": signal.value,
                "text": context.text_of(signal, signal.text),
                "session": signal.session_id if signal.is_own else "",
                "agent": signal.agent,
                "given_by": context.called(signal.given_by_id) if signal.given_by_id else "",
                "created_at": signal.created_at,
            }


def who_looked(scope: SubjectScope, context: CopyContext) -> Iterator[Row]:
    """Reads by people of the staff, oldest first, as far as the audit log records them."""
    records = list(scope.records().values_list("pk", flat=True))
    memory_ids = list(Memory.objects.filter(subject_id__in=scope.group).values_list("pk", flat=True))
    refs = [*scope.group, *records, *memory_ids]
    events = AuditEvent.objects.filter(type__in=READING, outcome="succeeded")
    named = events.concerning(refs)
    about = Q(subject_ref__in=scope.group) | Q(object_ref__in=refs) | Q(pk__in=named.order_by().values("pk"))
    own = set(records)
    for batch in by_key(events.filter(about)):
        actors = AuditActor.objects.filter(ref__in={event.actor_ref for event in batch}).in_bulk()
        for event in batch:
            event_type = known(event.type)
            actor = actors.get(event.actor_ref)
            if event.actor_kind == "person":
                by = context.called(actor.user_id if actor else None)
            else:
                by = f"a {event.get_actor_kind_display()}"
            yield {
                "at": event.at,
                "by": by,
                "access": event_type.meaning if event_type else event.type,
                "purpose": PURPOSES.get(event.reason_code, ""),
                "session": event.object_ref if event.object_ref in own else None,
            }


LISTINGS = (
    Listing(
        "memories",
        "What was learned about you",
        "Every statement that was learned about you or proposed, also those that were rejected, replaced or have"
        " expired.",
        memories,
    ),
    Listing(
        "told_to_agents",
        "What agents were told",
        "Statements that agents were given when they worked with you, in the words of that time.",
        told_to_agents,
    ),
    Listing(
        "decisions",
        "Decisions about what was learned",
        "Who approved or rejected a statement: a person of the staff, by number and role, or an automatic rule.",
        decisions,
    ),
    Listing("signals", "Corrections, wishes and ratings", "What was noted in order to learn from it.", signals),
    Listing(
        "who_looked",
        "Who looked at your data",
        "Each access by a person that the audit log recorded, with its purpose if one was stated. The same number"
        " stands for the same person within this copy.",
        who_looked,
    ),
)


# --- helpers ----------------------------------------------------------------------------------------------------------


def by_key(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """All rows by key, in batches that are queries of their own: no cursor stays open during a long build."""
    return in_batches(rows.order_by("pk"), ROWS_AT_ONCE)


def said(scope: SubjectScope, rows: QuerySet[Any]) -> Any:
    """Rows with `is_own`: true unless they are from a session of another person."""
    own = Q(record_id__isnull=True, session_id="") | scope.of_sessions("")
    return rows.annotate(is_own=Case(When(own, Value(True)), default=Value(False), output_field=BooleanField()))


def by_memory(rows: QuerySet[Any]) -> dict[UUID, list[Any]]:
    found = defaultdict(list)
    for row in rows:
        found[row.memory_id].append(row)
    return found
