"""Steps: memories and signals about the person, or learned from them, and their recalls by agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import Now

from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import RowStep
from memories_app.models import Distillation, Evidence, Memory, MemoryVersion, Recall, RecalledMemory, Review, Signal
from sessions_app.services.deletion_guards import check_deletion


def of_memories(scope: SubjectScope) -> Q:
    """Condition of rows that belong to a memory about the person."""
    return Q(memory__subject_id__in=scope.group)


class SharedMemories(RowStep):
    """Memories about others, or without a subject, that were learned from this person.

    One that rests on other sessions, too, is approved again by a person, who reads what is left of it.
    """

    name = "shared_memories"
    title = "Shared memories learned from this person"
    what_happens = "Quotes are deleted. A memory without other evidence is deleted, another is reviewed again."
    after = ("sessions", "vectors")

    def rows(self, scope: SubjectScope) -> QuerySet[Memory]:
        sources = Evidence.objects.filter(scope.of_sessions("memory__subject")).values("memory")
        return Memory.objects.filter(pk__in=sources).exclude(pk__in=Memory.objects.filter(subject_id__in=scope.group))

    def held_q(self, scope: SubjectScope) -> Q:
        return Q(evidence__record_id__in=scope.held_records)

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        keys = list(rows.values_list("pk", flat=True))
        Evidence.objects.filter(scope.of_sessions("memory__subject"), memory__in=keys).delete()
        shared = Memory.objects.filter(pk__in=keys)
        with_others = Evidence.objects.filter(memory__in=keys).values("memory")
        shared.filter(status=Memory.Status.APPROVED, pk__in=with_others).update(
            status=Memory.Status.NEEDS_REVALIDATION, awaiting_since=Now()
        )
        shared.exclude(pk__in=with_others).delete()


class OfMemories(RowStep):
    """Rows of a memory. They are erased before it, so that it is deleted in a small chunk, however many it has."""

    after: ClassVar[Sequence[str]] = ("sessions",)

    def held_q(self, scope: SubjectScope) -> Q:
        return Q(memory__evidence__record_id__in=scope.held_records)


class Quotes(OfMemories):
    name = "evidence"
    title = "Evidence quotes"
    what_happens = "Deleted."

    # The triggers of holds find the sessions of a memory by its evidence.
    after = ("sessions", "reviews", "versions")

    def rows(self, scope: SubjectScope) -> QuerySet[Evidence]:
        return Evidence.objects.filter(of_memories(scope))


class Versions(OfMemories):
    name = "versions"
    title = "Versions of memories"
    what_happens = "Deleted."

    def rows(self, scope: SubjectScope) -> QuerySet[MemoryVersion]:
        return MemoryVersion.objects.filter(of_memories(scope))


class Decisions(OfMemories):
    name = "reviews"
    title = "Decisions of reviewers"
    what_happens = "Deleted with the memory."

    def rows(self, scope: SubjectScope) -> QuerySet[Review]:
        return Review.objects.filter(of_memories(scope))

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        # No trigger of holds is on this table.
        sources = Evidence.objects.filter(memory__in=rows.values("memory"), record_id__isnull=False)
        check_deletion(records={quote.record_id for quote in sources.only("record_id") if quote.record_id})
        rows.delete()


class Recalls(RowStep):
    name = "recalls"
    title = "Recalls of memories by agents"
    what_happens = "Deleted."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[Recall]:
        return Recall.objects.filter(Q(subject_id__in=scope.group) | scope.of_sessions())

    def held_q(self, scope: SubjectScope) -> Q:
        return Q(record_id__in=scope.held_records)

    def erase_rows(self, scope: SubjectScope, rows: QuerySet[Any]) -> None:
        RecalledMemory.objects.filter(recall__in=list(rows.values_list("pk", flat=True))).delete()
        rows.delete()


class Signals(RowStep):
    name = "signals"
    title = "Signals"
    what_happens = "Deleted."
    after = ("sessions", "evidence")

    def rows(self, scope: SubjectScope) -> QuerySet[Signal]:
        return Signal.objects.filter(Q(subject_id__in=scope.group) | scope.of_sessions())

    def held_q(self, scope: SubjectScope) -> Q:
        return Q(record_id__in=scope.held_records)


class Distillations(RowStep):
    name = "distillations"
    title = "Records of learning from the sessions"
    what_happens = "Deleted."
    after = ("sessions",)

    def rows(self, scope: SubjectScope) -> QuerySet[Distillation]:
        return Distillation.objects.filter(record_id__in=scope.records().values("id"))


class Memories(RowStep):
    name = "memories"
    title = "Memories and proposals"
    what_happens = "Deleted, with their vectors."
    after = ("recalls", "signals", "reviews", "versions", "evidence", "vectors")

    def rows(self, scope: SubjectScope) -> QuerySet[Memory]:
        return Memory.objects.filter(subject_id__in=scope.group)

    def held_q(self, scope: SubjectScope) -> Q:
        return Q(evidence__record_id__in=scope.held_records)

    def details(self, scope: SubjectScope) -> Mapping[str, int]:
        counts = self.rows(scope).order_by().values_list("status").annotate(count=Count("pk"))
        with_vector = self.rows(scope).filter(embedding__isnull=False).count()
        return dict(counts) | ({"vectors": with_vector} if with_vector else {})
