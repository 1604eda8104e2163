"""Access to objects: one function for each kind; unknown objects and those of others both answer 404."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memories_app.models import ApprovalRule, Memory, MemoryVersion, Recall, Review


def memory_for(user: User, memory_id: UUID) -> Memory:
    """A memory that this operator may see, proposals included. Raises Http404."""
    people = ("claimed_by", "proposed_by", "approval__asked_by")
    known = Memory.objects.select_related("subject", "replaces", "merged_into", *people)
    return get_object_or_404(known.prefetch_related("subject__aliases").defer("embedding", "words"), pk=memory_id)


def version_for(user: User, memory_id: UUID, number: int) -> MemoryVersion:
    """A version of a memory. Raises Http404."""
    return get_object_or_404(MemoryVersion, memory=memory_id, number=number)


def recall_for(user: User, recall_id: UUID) -> Recall:
    """A recall, of any session. Raises Http404."""
    known = Recall.objects.select_related("subject").prefetch_related("subject__aliases")
    return get_object_or_404(known, pk=recall_id)


def rule_for(user: User, rule_id: UUID) -> ApprovalRule:
    """An approval rule. Raises Http404."""
    return get_object_or_404(ApprovalRule, pk=rule_id)


def sample_for(user: User, review_id: UUID) -> Review:
    """A rule's approval that a person must check. Raises Http404."""
    return get_object_or_404(Review, pk=review_id, is_sample=True)
