"""The database as a vector index: the column `embedding`, which has all vectors.

Recall uses it in its single statement (memadmin/client/candidates.py); `near` is the same query without words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from django.db.models import F
from pgvector.django import CosineDistance

from memadmin.client.vector_lookup import Near
from memories_app.models import Memory
from memories_app.recall.vectors.base import Vector


class PgVectorIndex:
    def put(self, vectors: Sequence[Vector]) -> None:
        """Stores vectors. A memory whose text changed meanwhile gets none; its row shows that it is missing."""
        for vector in vectors:
            Memory.objects.filter(pk=vector.id, content_hash=vector.content_hash).update(
                embedding=list(vector.numbers), embedder=vector.embedder, embedded_hash=vector.content_hash
            )

    def drop(self, memories: Collection[UUID]) -> None:
        Memory.objects.filter(pk__in=memories).update(embedding=None, embedder="", embedded_hash="")

    def held(self, memories: Collection[UUID]) -> Mapping[UUID, str]:
        kept = Memory.objects.filter(pk__in=memories, embedding__isnull=False)
        return dict(kept.values_list("pk", "embedded_hash"))

    def pages(self, size: int) -> Iterator[Mapping[UUID, str]]:
        last = UUID(int=0)
        kept = Memory.objects.filter(embedding__isnull=False).order_by("pk").values_list("pk", "embedded_hash")
        while page := dict(kept.filter(pk__gt=last)[:size]):
            yield page
            last = max(page)

    def near(
        self, vector: Sequence[float], *, embedder: str, subjects: Sequence[UUID], agent: str, limit: int
    ) -> list[Near]:
        comparable = Memory.objects.filter(embedder=embedder, status=Memory.Status.APPROVED, embedding__isnull=False)
        known = comparable.filter(agents=[]) | comparable.filter(agents__contains=[agent])
        by_distance = known.annotate(distance=CosineDistance("embedding", list(vector))).order_by("distance")
        rows = by_distance.annotate(hash=F("embedded_hash")).values_list("pk", "distance", "hash")
        found = [*rows.filter(subject__in=subjects)[:limit], *rows.filter(subject__isnull=True)[:limit]]
        return [Near(memory, 1 - distance, content_hash) for memory, distance, content_hash in found]
