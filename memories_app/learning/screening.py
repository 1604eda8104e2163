"""Looking for risks in what waits for a decision, and making its vector. Nothing is approved before."""

from __future__ import annotations

from django.conf import settings
from django.db.models import F

from memadmin.client import embedding
from memories_app.learning.risk_detection import risks_of
from memories_app.models import Memory
from memories_app.recall.indexing import vector_of
from memories_app.recall.vectors.pgvector import PgVectorIndex

BATCH = 200


def screen_memories(limit: int = BATCH) -> int:
    """Looks at up to `limit` texts that nobody has looked at, oldest first, and returns how many. Two queries and one
    for each text."""
    waiting = list(
        Memory.objects.awaiting_review().exclude(screened_hash=F("content_hash")).defer("embedding", "words")[:limit]
    )
    for memory in waiting:
        flags = [risk.flag for risk in risks_of(memory.statement, memory.data, regions=settings.PHONE_REGIONS)]
        # A text that was edited meanwhile has another hash, and is looked at next time.
        Memory.objects.filter(pk=memory.pk, content_hash=memory.content_hash).update(
            risk_flags=flags, screened_hash=memory.content_hash
        )
    return len(waiting)


def embed_memories(limit: int = BATCH) -> int:
    """Makes vectors of up to `limit` texts that have none of today's embedder, and returns how many.

    What waits and what is approved. Safe to stop anywhere and to call again: what is missing is seen from the rows, and
    so is what another embedder made. Raises UnfitVectors, and nothing was stored of that batch.
    """
    embedder = embedding.load(settings.EMBEDDER)
    if embedder is None:
        return 0
    kept = Memory.objects.filter(status__in=["proposed", "needs_revalidation", "approved"])
    lacking: list[Memory] = []
    # Two ranges of an index; "not this one" would be a walk over all.
    for others in (kept.filter(embedder__lt=embedder.name), kept.filter(embedder__gt=embedder.name)):
        some = others.only("pk", "statement", "content_hash", "subject", "agents").order_by("embedder", "pk")
        lacking += some[: limit - len(lacking)] if len(lacking) < limit else []
    if lacking:
        made = zip(lacking, embedding.embed(embedder, [memory.statement for memory in lacking]), strict=True)
        PgVectorIndex().put([vector_of(memory, embedder.name, numbers) for memory, numbers in made])
    return len(lacking)
