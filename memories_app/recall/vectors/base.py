"""The interface of vector indexes. tests/memories/test_vectors.py has the contract tests for each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from memadmin.client.vector_lookup import IndexAway, Nearest

__all__ = ["IndexAway", "Vector", "VectorIndex"]


@dataclass(frozen=True, slots=True)
class Vector:
    """A memory's entry in an index. Without text: the hash identifies the text."""

    id: UUID
    subject: UUID | None
    agents: Sequence[str]
    embedder: str
    content_hash: str
    numbers: Sequence[float]


class VectorIndex(Nearest, Protocol):
    """A writable index. Each method raises IndexAway, and is idempotent."""

    def put(self, vectors: Sequence[Vector]) -> None:
        """Adds vectors or replaces those of the same memories; they are searchable when it returns."""
        ...

    def drop(self, memories: Collection[UUID]) -> None:
        """Removes vectors of these memories, completely before it returns."""
        ...

    def held(self, memories: Collection[UUID]) -> Mapping[UUID, str]:
        """The memories that the index contains, each with the hash of its text."""
        ...

    def pages(self, size: int) -> Iterator[Mapping[UUID, str]]:
        """All entries, a page at a time, in any order."""
        ...
