"""View models of memories and their evidence: with masked values, and without quotes of locked sessions.

A quote is content of a session. Users who need a grant to read the session do not see the quote either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Count
from django.urls import reverse

from memadmin.audit.models import AuditActor
from memadmin.client.recalling import ChosenMemory
from memadmin.counting import count_up_to
from memories_app.models import Evidence, Memory, MemoryVersion, RecalledMemory
from memories_app.pages.evidence_context import Surroundings, surroundings_of
from memories_app.pages.word_diff import Piece, changes
from sessions_app import access
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, Subject

if TYPE_CHECKING:
    from memories_app.recall.preview import RecallPreview


@dataclass(frozen=True, slots=True)
class ShownMemory:
    """A memory with its masked statement."""

    memory: Memory
    statement: str


@dataclass(frozen=True, slots=True)
class Words:
    """Labels of a memory's kind, status and source."""

    kind: str
    provenance: str
    source: str
    status: str


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A memory in a list, with its subject; both values are empty for shared memories."""

    memory: Memory
    statement: str
    words: Words
    address: str
    subject: str
    subject_address: str


@dataclass(frozen=True, slots=True)
class ShownQuote:
    """A piece of evidence. `missing` is the reason for a missing quote; `record` is None if the session is gone."""

    evidence: Evidence
    text: str
    record: SessionRecord | None
    missing: str = ""
    surroundings: Surroundings | None = None

    @property
    def said_at(self) -> datetime | None:
        """When it was said; of a quote that an agent proposed, the time that the store has."""
        quoted = self.surroundings.quoted if self.surroundings else None
        return self.evidence.said_at or (quoted.at if quoted else None)


def shown_memories(memories: Iterable[Memory]) -> list[ShownMemory]:
    masker = Masker()
    return [ShownMemory(memory, masker.text(memory.statement)) for memory in memories]


def memory_rows(shown: Sequence[ShownMemory]) -> list[MemoryRow]:
    """One query, for the ids of their subjects."""
    labels = subject_labels(each.memory for each in shown)
    return [
        MemoryRow(
            each.memory,
            each.statement,
            words_for(each.memory),
            each.memory.get_absolute_url(),
            labels.get(each.memory.subject_id, "") if each.memory.subject_id else "",
            reverse("sessions:subject", args=[each.memory.subject_id]) if each.memory.subject_id else "",
        )
        for each in shown
    ]


def subject_labels(memories: Iterable[Memory]) -> dict[UUID, str]:
    """Labels of the memories' subjects. One query."""
    return Subject.objects.labels({each.subject_id for each in memories if each.subject_id})


WORDS: dict[str, dict[str, str]] = {
    name: {choice.value: str(choice.label) for choice in choices}
    for name, choices in (
        ("kind", Memory.Kind),
        ("provenance", Memory.Provenance),
        ("source", Memory.Source),
        ("status", Memory.Status),
    )
}


def words_for(memory: Memory) -> Words:
    """Labels for rows: Django's get_kind_display builds a list of all choices at each call."""
    return Words(**{name: words.get(value := getattr(memory, name), value) for name, words in WORDS.items()})


def matching_when_masked(shown: Sequence[ShownMemory], words: str) -> list[ShownMemory]:
    """Memories that match in their masked form, so that a match in masked text reveals nothing. One query, or none."""
    masked = {each.memory.pk: each.statement for each in shown if each.statement != each.memory.statement}
    if not masked:
        return list(shown)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM unnest(%s::uuid[], %s::text[]) AS shown(id, statement)"
            " WHERE to_tsvector('english', statement) @@ websearch_to_tsquery('english', %s)",
            [list(masked), list(masked.values()), words],
        )
        saying = {pk for (pk,) in cursor.fetchall()}
    return [each for each in shown if each.memory.pk not in masked or each.memory.pk in saying]


def quotes_for(user: User, evidence: Sequence[Evidence]) -> list[ShownQuote]:
    """The visible quotes of evidence, in the given order. One query, and two more if a session is locked."""
    ids = {each.record_id for each in evidence if each.record_id}
    records = {record.pk: record for record in SessionRecord.objects.on_record().with_names().filter(pk__in=ids)}
    closed = {record.pk for record in records.values() if record.is_locked or record.is_encrypted}
    closed -= access.granted_to(user) if closed else set()
    masker = Masker()
    quotes = []
    for each in evidence:
        record = records.get(each.record_id) if each.record_id else None
        if each.gone_at:
            quotes.append(ShownQuote(each, "", record, "The source was removed; only its hash is stored."))
        elif each.record_id and record is None:
            quotes.append(ShownQuote(each, "", None, "Its session is no longer available."))
        elif record and record.pk in closed:
            quotes.append(ShownQuote(each, "", record, "Its session is locked or encrypted: reading it needs a grant."))
        else:
            quotes.append(ShownQuote(each, masker.text(each.quote), record))
    return quotes


QUOTES_IN_CONTEXT = 3
"""Quotes of a proposal that are shown in their conversation: the first ones, each with one request to its store."""


def with_surroundings(quotes: Sequence[ShownQuote], reader: User) -> list[ShownQuote]:
    """The quotes, the first ones with their surroundings, where the reader may read the session.

    One request to a store for each of these.
    """
    left = QUOTES_IN_CONTEXT if reader.has_perm("sessions_app.read_content") else 0
    shown = []
    for quote in quotes:
        if left and quote.text and quote.record and quote.evidence.item_id:
            left -= 1
            found = surroundings_of(quote.evidence, quote.text, quote.record, reader)
            shown.append(replace(quote, surroundings=found))
        else:
            shown.append(quote)
    return shown


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version as a difference to the one before, with its author if known."""

    version: MemoryVersion
    pieces: list[Piece]
    author: str


def shown_versions(memory: Memory) -> list[ShownVersion]:
    """Newest first. Two queries."""
    versions = list(memory.versions.order_by("number"))
    refs = {version.author_ref for version in versions if version.author_ref}
    labels = dict(AuditActor.objects.filter(ref__in=refs).values_list("ref", "label"))
    masker, shown, before = Masker(), list[ShownVersion](), ""
    for version in versions:
        text = masker.text(version.statement)
        pieces = changes(before, text) if before and text else [Piece("kept", text)]
        author = labels.get(version.author_ref, "") if version.author_ref else "the database"
        shown.append(ShownVersion(version, pieces, author or "a person whose name was erased"))
        before = text
    return shown[::-1]


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a memory in a run, with the session if registered."""

    recalled: RecalledMemory
    record: SessionRecord | None
    memory_count: int


def uses_of(memory: Memory, limit: int) -> list[Use]:
    """The newest first. Three queries."""
    recalled = list(memory.recalls.select_related("recall").order_by("-recalled_at", "-pk")[:limit])
    ids = {each.recall.record_id for each in recalled if each.recall.record_id}
    records = SessionRecord.objects.on_record().with_names().in_bulk(ids)
    counts = dict(
        RecalledMemory.objects.filter(recall__in={each.recall_id for each in recalled})
        .values_list("recall")
        .annotate(memory_count=Count("pk"))
    )
    return [
        Use(each, records.get(each.recall.record_id) if each.recall.record_id else None, counts[each.recall_id])
        for each in recalled
    ]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback from runs that used a memory, counted up to COUNT_CAP."""

    helped: int
    corrected: int
    recalled: int


def feedback_on(memory: Memory) -> Feedback:
    """Three queries."""
    return Feedback(
        helped=count_up_to(memory.signals.filter(value__gt=0)),
        corrected=count_up_to(memory.signals.filter(value__lt=0)),
        recalled=count_up_to(memory.recalls.all()),
    )


@dataclass(frozen=True, slots=True)
class ShownChoice:
    """A memory in a preview: chosen, left out or hidden, with its statement masked."""

    memory_id: UUID
    statement: str
    about: str
    detail: ChosenMemory | None = None


def shown_preview(preview: RecallPreview, subject_key: str) -> dict[str, object]:
    """Context of the preview page, masked: chosen memories, others with reasons, and the text of the prompt."""
    masker = Masker()
    return {
        "chosen": [
            ShownChoice(each.memory.id, masker.text(each.memory.statement), ", ".join(each.reasons), each)
            for each in preview.choice.chosen
        ],
        "left_out": [
            *(
                ShownChoice(each.memory.id, masker.text(each.memory.statement), each.reason)
                for each in preview.choice.left_out
            ),
            *(ShownChoice(each.memory.pk, masker.text(each.memory.statement), each.reason) for each in preview.hidden),
        ],
        "text": masker.text(preview.choice.text(subject_key)),
    }
