"""Nearest-memory lookup in a vector index outside of the database.

Its results are looked up in the database, under the row policies of the caller: a stale index, or one that was
tampered with, changes the order of a run's memories, and never which ones it may use.
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
"""The database's own index, which FIND uses anyway."""

QDRANT = "qdrant:"
LOCAL = ":memory:"
COLLECTION = "memadmin_memories"

ANYBODY = ""
"""Stands for shared memories, among subjects, and for all, among agents: Qdrant does not look for missing values."""


@dataclass(frozen=True, slots=True)
class Near:
    """A result of an index: the cosine to the query, and the hash of the text that the vector is of."""

    id: UUID
    likeness: float
    content_hash: str


class Nearest(Protocol):
    """The part of an index that recall uses."""

    def near(
        self, vector: Sequence[float], *, embedder: str, subjects: Sequence[UUID], agent: str, limit: int
    ) -> list[Near]:
        """`limit` of those subjects' own memories, and of shared ones: the nearest to a vector of this
        embedder that this agent may use. Raises IndexAway.
        """
        ...


class UnknownIndex(ValueError):
    def __init__(self, name: str) -> None:
        super().__init__(f"{name!r} is not a vector index: use {INSIDE} or {QDRANT}https://HOST:6333.")


class IndexAway(Exception):
    """The index is not responding, or responds with an error."""


def load(name: str, key: str = "") -> Nearest | None:
    """The index of this name, as in `MEMADMIN_VECTOR_INDEX`; None for the database's own. Raises UnknownIndex."""
    if name == INSIDE:
        return None
    if name.startswith(QDRANT):
        return QdrantNearest(name, key)
    raise UnknownIndex(name)


class QdrantNearest:
    """A collection of Qdrant. Agents have a key that may read; with it they see vectors and our own ids, and no text.

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
        """Loaded on demand: its package takes a second."""
        from qdrant_client import QdrantClient

        if self.is_local:
            return QdrantClient(LOCAL)
        place = urlsplit(self.address)
        return QdrantClient(
            url=f"{place.scheme}://{place.netloc}",
            # Without a port the client would use Qdrant's own, whatever the address says.
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
            # The client has errors of its own, of httpx and of pydantic; none is a reason to stop a run.
            raise IndexAway(type(problem).__name__) from problem


def _among(field: str, values: Sequence[str]) -> models.FieldCondition:
    from qdrant_client import models

    return models.FieldCondition(key=field, match=models.MatchAny(any=list(values)))


def _read(points: Sequence[Any]) -> Iterator[Near]:
    for point in points:
        yield Near(UUID(str(point.id)), point.score, str((point.payload or {}).get("content_hash", "")))
