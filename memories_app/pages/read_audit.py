"""Audit events of memories that a page shows, recorded before it is sent. Raises audit.AuditUnavailable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.http import HttpRequest

from memadmin import audit
from memadmin.accounts.content_access import rules
from memories_app import audit_events
from memories_app.models import Memory, Recall
from memories_app.pages.view_models import ShownQuote
from memories_app.recall.preview import RecallPreview
from sessions_app.models import Subject
from sessions_app.views.read_audit import note_decrypted


def listed(memories: Sequence[Memory]) -> None:
    if memories:
        audit.before_showing(
            audit_events.MEMORIES_LISTED, shown=with_subjects(memories), counters={"memories": len(memories)}
        )


def memory(request: HttpRequest, shown: Memory, quotes: Sequence[ShownQuote], others: Iterable[Memory] = ()) -> None:
    """A viewed memory with quotes and the messages around them, and others shown beside it. Quotes are content of
    sessions and need a purpose."""
    read = [quote for quote in quotes if quote.text]
    around = [(quote.record, quote.surroundings) for quote in read if quote.record and quote.surroundings]
    audit.before_showing(
        audit_events.MEMORY_VIEWED,
        target=shown,
        subject=shown.subject_id,
        shown={quote.record.pk for quote in read if quote.record} | with_subjects(others),
        counters={"evidence": len(read)},
        reason_code=rules.purpose_of(request),
    )
    for record, found in around:
        audit.before_showing(
            audit_events.EVIDENCE_READ,
            target=record,
            subject=record.subject,
            counters={"messages": len(found.shown)},
            reason_code=rules.purpose_of(request),
        )
        if found.decrypted_count:
            note_decrypted(record, record.subject, found.decrypted_count, rules.purpose_of(request))


def recalled(preview: RecallPreview, subject: Subject | None) -> None:
    """The memories of a recall preview."""
    shown = {each.memory.id for each in preview.choice.chosen} | {each.memory.id for each in preview.choice.left_out}
    shown |= {each.memory.pk for each in preview.hidden}
    audit.before_showing(audit_events.RECALL_PREVIEWED, subject=subject, shown=shown, counters={"memories": len(shown)})


def recall_change_viewed(request: HttpRequest, proposal: Memory, shown: set[UUID]) -> None:
    """The memories of the recall preview of a proposal. The query may be content of a session and needs a purpose."""
    rules.purpose_of(request)
    audit.before_showing(
        audit_events.RECALL_PREVIEWED,
        subject=proposal.subject_id,
        shown={*shown, proposal.pk},
        counters={"memories": len(shown)},
    )


def recall_viewed(recall: Recall, memories: Sequence[Memory]) -> None:
    """The memories used in a run."""
    audit.before_showing(
        audit_events.RECALL_VIEWED,
        target=recall,
        subject=recall.subject_id,
        shown=with_subjects(memories),
        counters={"memories": len(memories)},
    )


def with_subjects(memories: Iterable[Memory]) -> set[UUID]:
    refs: set[UUID] = set()
    for each in memories:
        refs |= {each.pk} if each.subject_id is None else {each.pk, each.subject_id}
    return refs
