"""Screening of proposals for risks, and computation of vectors. Required before approval."""

from __future__ import annotations

from django.conf import settings
from django.db.models import F

from memadmin.client import embedding
from memories_app.learning.risk_detection import risks_of
from memories_app.models import Memory
from memories_app.recall.indexing import vector_of
from memories_app.recall.vectors.pgvector import PgVectorIndex
from memories_app.vector_column import has_vectors

BATCH = 200


def screen_memories(limit: int = BATCH) -> int:
    """Screens up to `limit` texts, oldest first, and returns their number. Two queries and one for each text."""
    waiting = list(
        Memory.objects.awaiting_review().exclude(screened_hash=F("content_hash")).defer("embedding", "words")[:limit]
    )
    for memory in waiting:
        flags = [risk.flag for risk in risks_of(memory.statement, memory.data, regions=settings.PHONE_REGIONS)]
        # A text that was edited meanwhile has another hash, and is screened next time.
        Memory.objects.filter(pk=memory.pk, content_hash=memory.content_hash).update(
            risk_flags=flags, screened_hash=memory.content_hash
        )
    return len(waiting)


def embed_memories(limit: int = BATCH) -> int:
    """Computes vectors of up to `limit` texts without one of the current embedder, and returns their number.

    For proposals and approved memories. Safe to stop anywhere and to call again: missing vectors, and those of other
    embedders, are derived from the rows. Raises UnfitVectors; then nothing of that batch was stored.
    """
    embedder = embedding.load(settings.EMBEDDER)
    if embedder is None or not has_vectors():
        return 0
    kept = Memory.objects.filter(status__in=["proposed", "needs_revalidation", "approved"])
    lacking: list[Memory] = []
    # Two ranges of an index; "not equal" would scan all rows.
    for others in (kept.filter(embedder__lt=embedder.name), kept.filter(embedder__gt=embedder.name)):
        some = others.only("pk", "statement", "content_hash", "subject", "agents").order_by("embedder", "pk")
        lacking += some[: limit - len(lacking)] if len(lacking) < limit else []
    if lacking:
        made = zip(lacking, embedding.embed(embedder, [memory.statement for memory in lacking]), strict=True)
        PgVectorIndex().put([vector_of(memory, embedder.name, numbers) for memory, numbers in made])
    return len(lacking)
