"""Redaction in memories: removes text redacted in sessions from quotes, signals, notes, memories and versions.

Agents do not recall a memory changed in this way until it is approved again. Its older versions lose their text, and so
do quotes of an item that lost its whole text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from memadmin import audit
from memadmin.runs.engine import Lease
from memories_app import audit_events
from memories_app.models import Evidence, Memory, MemoryVersion, Review, Signal
from memories_app.models.memories import LONGEST_QUOTE, LONGEST_STATEMENT, LONGEST_STORED_DATA
from sessions_app.models import Redaction
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.redaction import TextToRedact
from sessions_app.redaction.derived_copies import redacts_copies
from sessions_app.redaction.outcome import LeftReason
from sessions_app.redaction.text_to_redact import LEAST_CHARACTERS, MOST_CHARACTERS
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.timeline.markers import MARKER

LONGEST_NOTE = 1_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of a redaction: sessions, possibly one item, and their subjects."""

    records: frozenset[UUID]
    item_id: str
    subjects: frozenset[UUID]
    """Empty for one session: other memories of its subject come from elsewhere."""

    def of_items(self) -> Q:
        """Evidence and signals of these sessions; for one item also those not linked to an item yet."""
        found = Q(record_id__in=self.records)
        return found & Q(item_id__in=[self.item_id, ""]) if self.item_id else found

    def memories(self) -> QuerySet[Memory]:
        from_here = Q(pk__in=Evidence.objects.filter(self.of_items()).values("memory"))
        about = Q(subject__in=self.subjects) if self.subjects else Q()
        return Memory.objects.filter(from_here | about)


@redacts_copies
def redact_what_was_learned(
    lease: Lease, redaction: Redaction, sessions: SessionRecordQuerySet, wanted: TextToRedact | None
) -> None:
    """Redacts memories one by one, then signals; counts the changed ones."""
    scope = Scope(
        frozenset(sessions.values_list("pk", flat=True)),
        redaction.item_id,
        frozenset(redaction.subject.group_ids()) if redaction.subject and redaction.record_id is None else frozenset(),
    )
    for memory_id in list(scope.memories().values_list("pk", flat=True)):
        with lease.chunk() as run:
            try:
                run.count(copies=redact_memory(memory_id, scope, redaction, wanted))
            except DeletionRefused:
                run.add_exception(LeftReason.HELD.value)
    with lease.chunk() as run:
        try:
            run.count(copies=redact_signals(scope, redaction, wanted))
        except DeletionRefused:
            run.add_exception(LeftReason.HELD.value)


@transaction.atomic
def redact_memory(memory_id: UUID, scope: Scope, redaction: Redaction, wanted: TextToRedact | None) -> bool:
    """Redacts a memory; returns whether anything was removed. Raises DeletionRefused."""
    memory = Memory.objects.select_for_update(of=["self"]).defer("embedding", "words").get(pk=memory_id)
    evidence = [one for one in memory.evidence.all() if is_meant(one, scope, wanted)]
    # Of an item that loses its whole text only the quotes are known.
    texts = [wanted] if wanted else [TextToRedact.parse(one.quote) for one in evidence if is_long_enough(one.quote)]
    versions = [
        version
        for version in memory.versions.filter(erased_at__isnull=True)
        if any(contains_text(text, version.statement, version.data) for text in texts)
    ]
    notes = [review for review in memory.reviews.exclude(note="") if any(text.is_in(review.note) for text in texts)]
    says_so = any(contains_text(text, f"{memory.statement}\n{memory.key}", memory.data) for text in texts)
    if not (evidence or versions or notes or says_so):
        return False
    # All of it: a memory that was also learned from a held session is kept.
    sources = {one.record_id for one in memory.evidence.all() if one.record_id}
    check_deletion(records=sources, subjects=[memory.subject_id] if memory.subject_id else ())
    counters = {"quotes": len(evidence), "versions": len(versions), "notes": len(notes), "changed": int(says_so)}
    audit.record(
        audit_events.MEMORY_REDACTED,
        by=redaction.requested_by,
        target=memory,
        subject=memory.subject_id,
        counters=counters,
    )
    for one in evidence:
        redact_quote(one, wanted)
    for review in notes:
        Review.objects.filter(pk=review.pk).update(note=without(texts, review.note)[:LONGEST_NOTE])
    if says_so:
        change_words(memory, texts)
    MemoryVersion.objects.filter(pk__in=[version.pk for version in versions]).update(
        statement="", data={}, erased_at=Now()
    )
    return True


def is_meant(one: Evidence, scope: Scope, wanted: TextToRedact | None) -> bool:
    is_from_here = one.record_id in scope.records or (one.record_id is None and bool(scope.subjects))
    if not is_from_here or not one.quote:
        return False
    if wanted is None:
        return one.item_id == scope.item_id
    return one.item_id in (scope.item_id or one.item_id, "") and wanted.is_in(one.quote)


def redact_quote(one: Evidence, wanted: TextToRedact | None) -> None:
    """Redacts a quote and recomputes its hash: short texts can be guessed from theirs."""
    quote = without([wanted], one.quote)[:LONGEST_QUOTE] if wanted else ""
    gone = {} if wanted else {"gone_at": Now()}
    Evidence.objects.filter(pk=one.pk).update(quote=quote, quote_hash=sha256(quote.encode()).hexdigest(), **gone)


def change_words(memory: Memory, texts: list[TextToRedact]) -> None:
    """Changes the text; an approved memory returns to the queue, because the trigger `gate` refuses other changes."""
    data = without_in_json(texts, memory.data)
    changed: dict[str, Any] = {
        "statement": without(texts, memory.statement)[:LONGEST_STATEMENT],
        "key": without(texts, memory.key)[:80],
        # Markers may be longer than the text; what no longer fits in the column goes as a whole.
        "data": data if len(json.dumps(data, ensure_ascii=False)) <= LONGEST_STORED_DATA else {},
    }
    if memory.status == Memory.Status.APPROVED:
        changed |= {"status": Memory.Status.NEEDS_REVALIDATION, "awaiting_since": Now()}
    Memory.objects.filter(pk=memory.pk).update(**changed)


def redact_signals(scope: Scope, redaction: Redaction, wanted: TextToRedact | None) -> int:
    about = Q(subject__in=scope.subjects) if scope.subjects else Q()
    found = [
        signal
        for signal in Signal.objects.filter(scope.of_items() | about)
        .exclude(text="")
        .only("item_id", "text", "record_id", "subject")
        .iterator()
        if (wanted.is_in(signal.text) if wanted else signal.item_id == scope.item_id)
    ]
    if not found:
        return 0
    with transaction.atomic():
        check_deletion(
            records={signal.record_id for signal in found if signal.record_id},
            subjects={signal.subject_id for signal in found if signal.subject_id},
        )
        audit.record(
            audit_events.SIGNALS_REDACTED,
            by=redaction.requested_by,
            subject=redaction.subject_id,
            counters={"signals": len(found)},
        )
        for signal in found:
            text = without([wanted], signal.text)[:LONGEST_QUOTE] if wanted else ""
            Signal.objects.filter(pk=signal.pk).update(text=text)
    return len(found)


def is_long_enough(text: str) -> bool:
    return LEAST_CHARACTERS <= len(text.strip()) <= MOST_CHARACTERS


def contains_text(text: TextToRedact, statement: str, data: object) -> bool:
    """Whether a statement or its data contains a text."""
    return text.is_in(statement) or any(text.is_in(value) for value in strings_in(data))


def without(texts: list[TextToRedact], said: str) -> str:
    for text in texts:
        said, _ = text.replaced(said, MARKER)
    return said


def without_in_json(texts: list[TextToRedact], value: Any) -> Any:
    """The value without the texts in strings and names; matching numbers are removed, too."""
    return mapped(value, lambda said: without(texts, said))


def mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {change(name): mapped(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [mapped(inner, change) for inner in value]
    if isinstance(value, str):
        return change(value)
    plain = json.dumps(value)
    changed = change(plain)
    return value if changed == plain else changed


def strings_in(value: Any) -> Iterator[str]:
    """All strings in a JSON value, and numbers as text."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)
    else:
        yield value if isinstance(value, str) else json.dumps(value)
