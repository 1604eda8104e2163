"""Qdrant as a vector index: the writing part, with the worker's key. Reads for recall are in the agents' client."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from uuid import UUID

from qdrant_client import models

from memadmin.client.embedding import DIMENSIONS
from memadmin.client.vector_lookup import ANYBODY, IndexAway, QdrantNearest
from memories_app.recall.vectors.base import Vector

SECONDS = 30


class QdrantIndex(QdrantNearest):
    def __init__(self, name: str, key: str = "") -> None:
        super().__init__(name, key, seconds=SECONDS)
        self._is_there = False

    def put(self, vectors: Sequence[Vector]) -> None:
        if not vectors:
            return
        points = [
            models.PointStruct(
                id=str(vector.id),
                vector=list(vector.numbers),
                payload={
                    "subject": str(vector.subject) if vector.subject else ANYBODY,
                    "agents": list(vector.agents) or [ANYBODY],
                    "embedder": vector.embedder,
                    "content_hash": vector.content_hash,
                },
            )
            for vector in vectors
        ]
        with _away_explained():
            self._make_collection()
            self.client.upsert(self.collection, points, wait=True)

    def drop(self, memories: Collection[UUID]) -> None:
        if not memories:
            return
        with _away_explained():
            self._make_collection()
            self.client.delete(self.collection, [str(memory) for memory in memories], wait=True)

    def held(self, memories: Collection[UUID]) -> Mapping[UUID, str]:
        with _away_explained():
            self._make_collection()
            ids = [str(memory) for memory in memories]
            found = self.client.retrieve(self.collection, ids, with_payload=["content_hash"])
            return _hashes(found)

    def pages(self, size: int) -> Iterator[Mapping[UUID, str]]:
        offset = None
        while True:
            with _away_explained():
                self._make_collection()
                found, offset = self.client.scroll(
                    self.collection, limit=size, offset=offset, with_payload=["content_hash"]
                )
            if found:
                yield _hashes(found)
            if offset is None:
                return

    def _make_collection(self) -> None:
        """Creates the collection; another process may be faster."""
        if self._is_there or self.client.collection_exists(self.collection):
            self._is_there = True
            return
        size = models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)
        self.client.create_collection(self.collection, vectors_config=size)
        if not self.is_local:
            # A tenant index: searches within a subject's own memories read nothing else.
            subject = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
            self.client.create_payload_index(self.collection, "subject", subject)
            for field in ("embedder", "agents"):
                self.client.create_payload_index(self.collection, field, models.PayloadSchemaType.KEYWORD)
        self._is_there = True


def _hashes(points: Sequence[models.Record]) -> dict[UUID, str]:
    return {UUID(str(point.id)): str((point.payload or {}).get("content_hash", "")) for point in points}


@contextmanager
def _away_explained() -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        # Errors of httpx, pydantic and Qdrant; their messages may contain addresses and keys and are dropped.
        raise IndexAway(type(problem).__name__) from problem
