"""Approval rules: automatic approvals, with a sample that a person checks.

A rule approves new proposals that were screened and compared, replace and contradict nothing, are no duplicates of
memories or proposals, and are not claimed. Never shared or risky ones, those from a tool or a page, those of an agent,
or those without a quote that was found in a user's item, as in the gate; nor those of a person, who could have made
the rule.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, Value
from django.db.models.functions import Greatest, Now

from memadmin import audit
from memories_app import audit_events
from memories_app.dedup.consolidation import mark_against_others
from memories_app.models import ApprovalRule, Memory, Review
from memories_app.models.querysets import MemoryQuerySet
from memories_app.review.claiming import locked_rows, moment_of
from memories_app.services.refusals import MemoryActionRefused, Overtaken, gate_explained
from memories_app.vector_column import uses_vectors

logger = logging.getLogger(__name__)

BATCH = 100

LOOKED_BACK = timedelta(days=30)

LOOKED_AT = 5_000
"""Maximum of decisions used."""

UNTRUSTED = (Memory.Source.TOOL, Memory.Source.WEB)

CONDITIONS = ("kinds", "provenance", "sources", "extractor", "min_confidence")
COLUMNS = ("name", *CONDITIONS, "sample_percent", "is_active")


HAS_USER_QUOTE = Func("pk", "subject", function="memadmin_has_user_quote", output_field=BooleanField())
"""Condition that the gate checks, too: the memory has a quote that the console itself distilled or imported. Kind,
source and confidence are the proposer's own claims."""


class SampleDecided(Overtaken):
    sentence = "This sample has already been checked."


def taken_by(rule: ApprovalRule, memories: MemoryQuerySet) -> MemoryQuerySet:
    """Memories that match its conditions. Used for approvals and for the preview of a rule."""
    taken = memories.filter(
        HAS_USER_QUOTE,
        subject__isnull=False,
        risk_flags=[],
        replaces__isnull=True,
        proposed_by__isnull=True,
        confidence__gte=rule.min_confidence,
    ).exclude(source__in=UNTRUSTED)
    if rule.kinds:
        taken = taken.filter(kind__in=rule.kinds)
    if rule.provenance:
        taken = taken.filter(provenance=rule.provenance)
    if rule.extractor:
        taken = taken.filter(extractor=rule.extractor)
    return taken.filter(source__in=rule.sources) if rule.sources else taken


def waiting_for(rule: ApprovalRule) -> MemoryQuerySet:
    """Proposals that the rule approves now, oldest first."""
    waiting = Memory.objects.awaiting_review().filter(
        Q(claimed_by=None) | Q(claimed_until__lte=Now()),
        status=Memory.Status.PROPOSED,
        screened_hash=F("content_hash"),
        hints=[],
    )
    if uses_vectors():
        # Near duplicates can only be detected with its vector.
        waiting = waiting.filter(embedded_hash=F("content_hash"))
    speaks_of_the_same = Memory.objects.filter(
        subject=OuterRef("subject"), kind=OuterRef("kind"), key=OuterRef("key"), status=Memory.Status.APPROVED
    )
    return taken_by(rule, waiting).filter(Q(key="") | ~Exists(speaks_of_the_same))


@transaction.atomic
def save_rule(rule: ApprovalRule, *, by: User, values: Mapping[str, Any]) -> ApprovalRule:
    """Creates or changes a rule; its earlier approvals stay."""
    assert set(values) <= set(COLUMNS), "these columns are not a form's to change"
    for name, value in values.items():
        setattr(rule, name, value)
    is_new = rule._state.adding
    if is_new:
        rule.pk, rule.created_by = uuid.uuid4(), by
    # Before the change: it proves to the database who makes it.
    audit.record(audit_events.RULE_SAVED, by=by, target=rule, counters={"active": int(rule.is_active)})
    rule.save(force_insert=is_new, update_fields=None if is_new else list(values))
    return rule


def apply_rules(limit: int = BATCH) -> int:
    """Approves up to `limit` proposals for each active rule, each in a transaction of its own; returns their number."""
    count = 0
    for rule in ApprovalRule.objects.filter(is_active=True):
        for key in waiting_for(rule).values_list("pk", flat=True)[:limit]:
            try:
                count += approve_by_rule(Memory(pk=key), rule)
            except MemoryActionRefused as problem:
                # A proposal refused by the gate does not block the others.
                logger.warning("rule %s did not approve memory %s: %s", rule.pk, key, problem)
    return count


@transaction.atomic
def approve_by_rule(memory: Memory, rule: ApprovalRule) -> bool:
    """Whether it was approved; False if the proposal was claimed or changed meanwhile, or the rule deactivated."""
    memory = locked_rows(memory.pk)[memory.pk]
    if not waiting_for(rule).filter(pk=memory.pk).exists():
        return False
    # Marks are updated hourly; a rule needs current ones.
    if mark_against_others(memory):
        return False
    audit.record(audit_events.MEMORY_APPROVED, target=memory, subject=memory.subject_id, shown=[rule.pk])
    is_sample = random.randrange(100) < rule.sample_percent
    moment = moment_of(memory)
    with gate_explained(memory):
        Review.objects.create(
            memory=memory,
            rule=rule,
            decision=Review.Decision.APPROVE,
            content_hash=memory.content_hash,
            is_sample=is_sample,
            waited=max(moment - memory.awaiting_since, timedelta()),
            # As for people: a clock that was set back must not delay the approval.
            decided_at=Greatest(Now(), Value(memory.awaiting_since)),
        )
        memory.status, memory.decided_at = Memory.Status.APPROVED, moment
        memory.save(update_fields=["status", "decided_at"])
    return True


def samples_to_see() -> Any:
    """Approvals by rules that a person must check, oldest first."""
    unseen = Review.objects.filter(is_sample=True, agreed__isnull=True, undone_at=None, rule__isnull=False)
    return unseen.filter(memory__status=Memory.Status.APPROVED).order_by("decided_at", "pk")


@transaction.atomic
def judge_sample(review: Review, *, by: User, agreed: bool) -> Memory:
    """Records the check of a sample. If the rule was wrong, the memory returns to the queue and is not recalled.

    Raises SampleDecided.
    """
    memory = locked_rows(review.memory_id)[review.memory_id]
    review = Review.objects.select_for_update(of=("self",), no_key=True).get(pk=review.pk)
    if review.agreed is not None or not review.is_sample or memory.status != Memory.Status.APPROVED:
        raise SampleDecided(memory)
    audit.record(
        audit_events.SAMPLE_JUDGED, by=by, target=memory, subject=memory.subject_id, counters={"agreed": int(agreed)}
    )
    review.agreed = agreed
    review.save(update_fields=["agreed"])
    if not agreed:
        moment = moment_of(memory)
        memory.status, memory.awaiting_since, memory.decided_at = Memory.Status.NEEDS_REVALIDATION, moment, None
        memory.save(update_fields=["status", "awaiting_since", "decided_at"])
    return memory


@dataclass(frozen=True, slots=True)
class Hindsight:
    """Recent decisions by people that a rule would have approved, with their results."""

    looked_at: int
    taken: int
    approved: int
    edited: int
    rejected: int

    @property
    def agreement(self) -> int | None:
        """Percentage of its approvals that people approved unchanged."""
        return round(100 * self.approved / self.taken) if self.taken else None


def hindsight(rule: ApprovalRule) -> Hindsight:
    """Computed from decisions of the last 30 days, the newest 5,000 of them. Two queries.

    It uses the current state of each memory: risks found later count, too.
    """
    decided = Review.objects.filter(
        reviewer__isnull=False,
        undone_at=None,
        decided_at__gt=Now() - LOOKED_BACK,
        decision__in=[Review.Decision.APPROVE, Review.Decision.REJECT],
    )
    newest = decided.order_by("-decided_at", "-id").values_list("memory_id", "decision", "was_edited")[:LOOKED_AT]
    last: dict[Any, tuple[str, bool]] = {}
    for key, decision, was_edited in newest:
        last.setdefault(key, (decision, was_edited))
    taken = set(taken_by(rule, Memory.objects.filter(pk__in=last)).values_list("pk", flat=True))
    made = [last[key] for key in taken]
    approved = sum(decision == Review.Decision.APPROVE and not was_edited for decision, was_edited in made)
    edited = sum(was_edited for _, was_edited in made)
    return Hindsight(len(last), len(taken), approved, edited, len(taken) - approved - edited)
