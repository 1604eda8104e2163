"""Vector indexes: that of the database, and external ones with a copy of approved vectors.

All vectors are in the column `embedding`; an external index only returns ids in order, which are looked up in the
database.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings

from memadmin.client import vector_lookup
from memories_app.recall.vectors.base import IndexAway, Vector, VectorIndex

__all__ = ["IndexAway", "Vector", "VectorIndex", "outside"]


def outside() -> VectorIndex | None:
    """The external index used by recall; None if not configured."""
    return _outside(settings.VECTOR_INDEX, settings.VECTOR_INDEX_KEY)


@cache
def _outside(name: str, key: str) -> VectorIndex | None:
    if name == vector_lookup.INSIDE:
        return None
    from memories_app.recall.vectors.qdrant import QdrantIndex

    return QdrantIndex(name, key)
