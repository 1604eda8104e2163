"""Step: vectors of memories in an external index."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from memadmin.erasure.models import ErasureStep
from memadmin.erasure.scope import SubjectScope
from memadmin.erasure.steps.base import Counted, Done, Step
from memadmin.erasure.steps.memories import SharedMemories
from memories_app.models import Evidence, Memory
from memories_app.recall import indexing
from memories_app.recall.vectors import IndexAway, outside
from sessions_app.stores.base import StoreUnavailable

AWAY = "The external vector index does not respond."


class Vectors(Step):
    """Before the memories, by whose ids vectors are found. The index is in no transaction: a worker that is killed here
    removes them again.
    """

    name = "vectors"
    title = "Vectors in the external index"
    what_happens = "Removed."
    after = ("sessions",)

    def places(self, scope: SubjectScope) -> list[str]:
        return [""] if outside() else []

    def memories(self, scope: SubjectScope) -> QuerySet[Memory]:
        """Memories that lose their vector: those of the person, and shared ones that were learned from the person."""
        shared = SharedMemories().rows(scope).values("pk")
        found = Memory.objects.filter(Q(subject_id__in=scope.group) | Q(pk__in=shared)).order_by("pk")
        held = Evidence.objects.filter(record_id__in=scope.held_records).values("memory")
        return found.exclude(pk__in=held) if scope.held_records else found

    def count(self, scope: SubjectScope, place: str) -> Counted:
        try:
            return Counted(indexing.count_vectors(self.memories(scope)))
        except IndexAway:
            return Counted(0, problem=AWAY)

    def erase_some(self, scope: SubjectScope, step: ErasureStep, *, at_most: int) -> Done:
        memories = self.memories(scope)
        later = memories.filter(pk__gt=step.cursor) if step.cursor else memories
        keys = list(later.values_list("pk", flat=True)[:at_most])
        if not keys:
            return Done()
        try:
            return Done(passed=len(keys), erased=indexing.remove_vectors(keys), cursor=str(keys[-1]))
        except IndexAway as problem:
            raise StoreUnavailable(AWAY) from problem
