"""Undoing of decisions within a minute: restores the state before the decision."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import models, transaction

from memadmin import audit
from memadmin.accounts.approvals import services as approvals
from memories_app import audit_events
from memories_app.models import Evidence, Memory, MemoryVersion, Review
from memories_app.review.claiming import LEASE, last_review, locked_rows, moment_of, name_of
from memories_app.review.decisions import CONTENT
from memories_app.services.refusals import Overtaken, gate_explained

UNDO_WITHIN = timedelta(minutes=1)


class CannotBeUndone(Overtaken):
    pass


@transaction.atomic
def undo_decision(memory: Memory, *, by: User) -> Memory:
    """Undoes the latest decision about a memory, made by this person in the last minute.

    It waits again at its previous position, claimed by this person. Raises CannotBeUndone with the reason.
    """
    by_key = locked_rows(memory.pk, memory.replaces_id)
    memory = by_key[memory.pk]
    review = last_review(memory)
    if review is None or review.reviewer_id != by.pk:
        who = name_of(review.reviewer) if review else "No reviewer"
        raise CannotBeUndone(memory, f"You cannot undo this: the latest decision is not yours ({who}).")
    moment = moment_of(memory)
    if moment - review.decided_at > UNDO_WITHIN:
        raise CannotBeUndone(
            memory, "A decision can be undone within one minute. This one is older; agents may already use it."
        )
    if memory.is_awaiting:
        approvals.make_void(memory, by=by)
    audit.record(audit_events.DECISION_UNDONE, by=by, target=memory, subject=memory.subject_id)
    if review.decision == Review.Decision.APPROVE and memory.status == Memory.Status.MERGED:
        restore_base(by_key[memory.replaces_id], memory, review)
    if review.before and review.before.get("evidence"):
        Evidence.objects.filter(pk__in=review.before["evidence"]).update(memory=memory, version=memory.version)
    review.undone_at = moment
    review.save(update_fields=["undone_at"])
    memory.status = waiting_status(memory)
    memory.decided_at = memory.merged_into = None
    memory.claimed_by, memory.claimed_until = by, moment + LEASE
    memory.save(update_fields=["status", "decided_at", "merged_into", "claimed_by", "claimed_until"])
    return memory


def waiting_status(memory: Memory) -> Memory.Status:
    """The status in which it waited: for a decision or for re-validation. One query, or none."""
    was_approved = (
        memory.awaiting_since > memory.proposed_at
        and memory.reviews.filter(decision=Review.Decision.APPROVE, decided_at__lt=memory.awaiting_since).exists()
    )
    return Memory.Status.NEEDS_REVALIDATION if was_approved else Memory.Status.PROPOSED


def restore_base(base: Memory, memory: Memory, review: Review) -> None:
    before: dict[str, Any] = review.before or {}
    version = MemoryVersion.objects.filter(memory=base, number=before["version"], erased_at=None).first()
    if base.content_hash != memory.content_hash or version is None:
        raise CannotBeUndone(memory, "The memory has changed again since. Propose a new change instead.")
    base.statement, base.data = version.statement, version.data
    for name in CONTENT:
        setattr(base, name, from_json(Memory._meta.get_field(name), before["columns"][name]))
    base.status = before["status"]
    with gate_explained(base):
        # The embedding belongs to the other text, as its hash shows.
        base.save(update_fields=["statement", "data", *CONTENT, "status"])


def from_json(field: Any, value: Any) -> datetime | date | Any:
    return field.to_python(value) if isinstance(field, models.DateField) else value
