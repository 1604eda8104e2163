"""Synchronisation of an external vector index with the approved memories of the database.

A trigger stores a note for each memory whose vector must be added or removed, also for deleted rows (VectorNote). A
note is deleted after it was processed, so a crash or an unavailable index loses nothing. `compare_vectors` compares
both sides completely.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from memadmin.batching import batched
from memories_app.models import Memory, VectorNote
from memories_app.models.querysets import MemoryQuerySet
from memories_app.recall.vectors import Vector, VectorIndex, outside

BATCH = 200
PAGE = 1000


class NoOtherIndex(Exception):
    """No external vector index is configured."""

    def __init__(self) -> None:
        super().__init__("Vectors are stored only in the database: MEMADMIN_VECTOR_INDEX is not set.")


@dataclass(slots=True)
class Compared:
    """Number of vectors in the external index, and of differences to the database."""

    held: int = 0
    lacking: int = 0
    outdated: int = 0
    left_over: int = 0

    @property
    def is_alike(self) -> bool:
        return not (self.lacking or self.outdated or self.left_over)


def vector_of(memory: Memory, embedder: str, numbers: Sequence[float]) -> Vector:
    return Vector(memory.pk, memory.subject_id, memory.agents, embedder, memory.content_hash, numbers)


def carry_vectors(limit: int = BATCH) -> int:
    """Processes up to `limit` notes, oldest first, and returns their number. Three queries. Raises IndexAway; then they
    stay. Without an external index they are deleted."""
    notes = dict(VectorNote.objects.order_by("noted_at").values_list("memory_id", "token")[:limit])
    if index := outside():
        _make_alike(index, notes)
    # A note renewed meanwhile has another token.
    VectorNote.objects.filter(memory_id__in=notes, token__in=notes.values()).delete()
    return len(notes)


def count_vectors(memories: QuerySet[Memory]) -> int:
    """Number of these memories that are in the external index, PAGE at a time. Raises IndexAway."""
    index = outside()
    if index is None:
        return 0
    keys = memories.values_list("pk", flat=True).iterator(PAGE)
    return sum(len(index.held(page)) for page in batched(keys, PAGE))


def remove_vectors(memories: Collection[UUID]) -> int:
    """Removes vectors from the external index before it returns; returns how many there were. Raises IndexAway."""
    index = outside()
    if index is None:
        return 0
    count = len(index.held(memories))
    index.drop(memories)
    return count


def compare_vectors(*, mend: bool = False) -> Compared:
    """Compares the external index with all approved memories. With `mend` corrects it, which also fills a new one.

    Noted memories are pending and not differences. Raises NoOtherIndex and IndexAway. Reads both sides, PAGE at a time.
    """
    index = outside()
    if index is None:
        raise NoOtherIndex
    compared = Compared()
    for page in index.pages(PAGE):
        compared.held += len(page)
        _compare(index, list(page), compared, mend=mend)
    last = UUID(int=0)
    approved = _approved().order_by("pk").values_list("pk", flat=True)
    while keys := list(approved.filter(pk__gt=last)[:PAGE]):
        there = index.held(keys)
        _compare(index, [key for key in keys if key not in there], compared, mend=mend)
        last = keys[-1]
    return compared


def _compare(index: VectorIndex, keys: Sequence[UUID], compared: Compared, *, mend: bool) -> None:
    # Compared twice: a change between the two reads may have been processed meanwhile.
    wrong = _unlike(index, _unlike(index, keys))
    for difference in wrong.values():
        compared.lacking += difference.is_lacking
        compared.outdated += difference.is_outdated
        compared.left_over += difference.is_left_over
    if mend and wrong:
        _make_alike(index, wrong)


@dataclass(frozen=True, slots=True)
class VectorDifference:
    """Hashes of the expected and the actual text of a vector; None for a vector that should not exist, or does not."""

    should: str | None
    is_of: str | None

    @property
    def is_lacking(self) -> bool:
        return self.is_of is None

    @property
    def is_left_over(self) -> bool:
        return self.should is None

    @property
    def is_outdated(self) -> bool:
        return None not in (self.should, self.is_of)


def _unlike(index: VectorIndex, keys: Collection[UUID]) -> Mapping[UUID, VectorDifference]:
    if not keys:
        return {}
    are = index.held(keys)
    should = dict(_approved().filter(pk__in=keys).values_list("pk", "content_hash"))
    noted = set(VectorNote.objects.filter(memory_id__in=keys).values_list("memory_id", flat=True))
    both = {key: VectorDifference(should.get(key), are.get(key)) for key in keys if key not in noted}
    return {key: found for key, found in both.items() if found.should != found.is_of}


def _approved() -> MemoryQuerySet:
    return Memory.objects.filter(status=Memory.Status.APPROVED, embedding__isnull=False)


def _make_alike(index: VectorIndex, memories: Collection[UUID]) -> None:
    kept = _approved().filter(pk__in=memories).only("subject", "agents", "content_hash", "embedder", "embedding")
    vectors = {memory.pk: vector_of(memory, memory.embedder, list(memory.embedding)) for memory in kept}
    index.drop([key for key in memories if key not in vectors])
    index.put(list(vectors.values()))
