"""Nearest-memory lookup in a vector index outside of the database.

What an index names is looked up in the database, under the row policies of who asks: one that is stale, or that
somebody tampered with, changes the order of what a run is told, and never what it may be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from uuid import UUID

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

INSIDE = "pgvector"
"""The database's own, of which FIND makes use without being told."""

QDRANT = "qdrant:"
LOCAL = ":memory:"
COLLECTION = "memadmin_memories"

ANYBODY = ""
"""Stands for what all share, among subjects, and for all, among agents: Qdrant does not look for what is missing."""


@dataclass(frozen=True, slots=True)
class Near:
    """A memory that an index names: the cosine to what was asked, and of which text of it the vector is."""

    id: UUID
    likeness: float
    content_hash: str


class Nearest(Protocol):
    """The side of an index that recall asks."""

    def near(
        self, vector: Sequence[float], *, embedder: str, subjects: Sequence[UUID], agent: str, limit: int
    ) -> list[Near]:
        """Of those subjects' own memories, and of what all share, `limit` each: the nearest to a vector of this
        embedder, as far as this agent may know them. Raises IndexAway."""
        ...


class UnknownIndex(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is no index of vectors: take {INSIDE} or {QDRANT}https://HOST:6333.")


class IndexAway(Exception):
    """The index does not answer, or answers with an error."""


def load(name: str, key: str = "") -> Nearest | None:
    """The index of this name, as `MEMADMIN_VECTOR_INDEX` has it; None for the database's own. Raises UnknownIndex."""
    if name == INSIDE:
        return None
    if name.startswith(QDRANT):
        return QdrantNearest(name, key)
    raise UnknownIndex(name)


class QdrantNearest:
    """A collection of Qdrant. Agents hold a key that reads; with it they see vectors and our own ids, and no text.

    The address is `qdrant:https://HOST:6333`, with a collection of another name than ours as its path;
    `qdrant::memory:` is one within the process, for tests.
    """

    def __init__(self, name: str, key: str = "", *, seconds: int = 2) -> None:
        self.address = name.removeprefix(QDRANT)
        self.is_local = self.address == LOCAL
        self.collection = COLLECTION if self.is_local else urlsplit(self.address).path.strip("/") or COLLECTION
        self._key, self._seconds = key, seconds

    @cached_property
    def client(self) -> QdrantClient:
        """Loaded when it is needed: its package takes a second."""
        from qdrant_client import QdrantClient

        if self.is_local:
            return QdrantClient(LOCAL)
        place = urlsplit(self.address)
        return QdrantClient(
            url=f"{place.scheme}://{place.netloc}",
            # Without a port the client would take Qdrant's own, whatever the address says.
            port=place.port or (443 if place.scheme == "https" else 80),
            api_key=self._key or None,
            timeout=self._seconds,
            check_compatibility=False,
        )

    def near(
        self, vector: Sequence[float], *, embedder: str, subjects: Sequence[UUID], agent: str, limit: int
    ) -> list[Near]:
        from qdrant_client import models

        whose = [[str(subject) for subject in subjects]] * bool(subjects) + [[ANYBODY]]
        asked = [
            models.QueryRequest(
                query=list(vector),
                limit=limit,
                with_payload=["content_hash"],
                filter=models.Filter(
                    must=[_among("embedder", [embedder]), _among("subject", some), _among("agents", [ANYBODY, agent])]
                ),
            )
            for some in whose
        ]
        try:
            answers = self.client.query_batch_points(self.collection, asked)
            return [near for answer in answers for near in _read(answer.points)]
        except Exception as problem:
            # The client has errors of its own, of httpx and of pydantic; none is worth the run that asks.
            raise IndexAway(type(problem).__name__) from problem


def _among(field: str, values: Sequence[str]) -> models.FieldCondition:
    from qdrant_client import models

    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def _read(points: Sequence[Any]) -> Iterator[Near]:
    for point in points:
        yield Near(UUID(str(point.id)), point.score, str((point.payload or {}).get("content_hash", "")))
