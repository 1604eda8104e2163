"""Indexes of vectors: the database's own, and others that hold a copy of what was approved.

The column `embedding` is where every vector is; what asks another index than pgvector asks for the order alone, and
looks up in the database what it names.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings

from memadmin.client import vector_lookup
from memories_app.recall.vectors.base import IndexAway, Vector, VectorIndex

__all__ = ["IndexAway", "Vector", "VectorIndex", "outside"]


def outside() -> VectorIndex | None:
    """The index that recall asks instead of the database; None where there is no other."""
    return _outside(settings.VECTOR_INDEX, settings.VECTOR_INDEX_KEY)


@cache
def _outside(name: str, key: str) -> VectorIndex | None:
    if name == vector_lookup.INSIDE:
        return None
    from memories_app.recall.vectors.qdrant import QdrantIndex

    return QdrantIndex(name, key)
