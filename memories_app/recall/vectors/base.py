"""What an index of vectors does for us. tests/memories/test_vectors.py has the contract, for each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from memadmin.client.vector_lookup import IndexAway, Nearest

__all__ = ["IndexAway", "Vector", "VectorIndex"]


@dataclass(frozen=True, slots=True)
class Vector:
    """What lies in an index for a memory. No text: of which one it was made tells the hash."""

    id: UUID
    subject: UUID | None
    agents: Sequence[str]
    embedder: str
    content_hash: str
    numbers: Sequence[float]


class VectorIndex(Nearest, Protocol):
    """Each method raises IndexAway, and may be called again with the same."""

    def put(self, vectors: Sequence[Vector]) -> None:
        """Takes them in, or in place of those of the same memories; they are found when it returns."""
        ...

    def drop(self, memories: Collection[UUID]) -> None:
        """Forgets those that are there; they lie nowhere in it when it returns."""
        ...

    def held(self, memories: Collection[UUID]) -> Mapping[UUID, str]:
        """Those of them that are there, each with the hash of its text."""
        ...

    def pages(self, size: int) -> Iterator[Mapping[UUID, str]]:
        """All that is there, a page at a time, in any order."""
        ...
