"""Candidates: pairs of memories that could be similar or contradict each other, among proposals and approved ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import connection

from memories_app.dedup.similarity import NEAR, ComparedText
from memories_app.vector_column import has_vectors

MOST_LIKE = 5
"""Maximum of nearest shared memories with which one is compared."""


# OFFSET prevents a join of the whole table, of which the planner overestimates the needed part. Memories of one subject
# are all compared. Shared ones only with the nearest by the vector index, those with the same key, and those with all
# of its words.
def _candidates(likeness: str, or_near: str = "", or_nearest: str = "") -> str:
    return f"""
SELECT m.id, o.id, m.kind, m.key, m.statement, m.agents, m.content_hash,
       o.kind, o.key, o.statement, o.agents, o.content_hash,
       {likeness}
FROM memories_app_memory AS m CROSS JOIN LATERAL (
    SELECT id FROM memories_app_memory
    WHERE subject_id = ANY (memadmin_subject_group(m.subject_id)) AND status = ANY (%(statuses)s)
      AND ((key <> '' AND key = m.key AND kind = m.kind) OR words = m.words{or_near})
    UNION
    (SELECT id FROM memories_app_memory
     WHERE m.subject_id IS NULL AND m.key <> '' AND subject_id IS NULL AND status = ANY (%(statuses)s)
       AND kind = m.kind AND key = m.key LIMIT %(most)s)
    UNION
    (SELECT id FROM memories_app_memory
     WHERE m.subject_id IS NULL AND subject_id IS NULL AND status = ANY (%(statuses)s)
       AND words @@ plainto_tsquery('english', m.statement) AND words = m.words LIMIT %(most)s)
    {or_nearest}
) AS near CROSS JOIN LATERAL (SELECT * FROM memories_app_memory WHERE id = near.id OFFSET 0) AS o
WHERE m.id = ANY (%(ids)s) AND o.id <> m.id
  AND o.id IS DISTINCT FROM m.replaces_id AND m.id IS DISTINCT FROM o.replaces_id
ORDER BY m.id, o.id
"""


BY_VECTORS = _candidates(
    "CASE WHEN o.embedder = m.embedder THEN 1 - (m.embedding <=> o.embedding) END",
    " OR (embedder = m.embedder AND embedding <=> m.embedding <= %(farthest)s)",
    """UNION
    (SELECT id FROM memories_app_memory
     WHERE m.subject_id IS NULL AND m.embedding IS NOT NULL AND subject_id IS NULL AND status = 'approved'
     ORDER BY embedding <=> m.embedding LIMIT %(most)s)""",
)
BY_WORDS = _candidates("NULL::float8")
"""For databases without pgvector."""


def compared_with(
    ids: Collection[UUID], *, statuses: Collection[str]
) -> list[tuple[ComparedText, ComparedText, float | None]]:
    """Each memory with candidates of these statuses. Two queries."""
    with connection.cursor() as cursor:
        asked: dict[str, Any] = {"ids": list(ids), "statuses": list(statuses)}
        cursor.execute(BY_VECTORS if has_vectors() else BY_WORDS, asked | {"farthest": 1 - NEAR, "most": MOST_LIKE})
        return [
            (
                ComparedText(row[0], row[2], row[3], row[4], frozenset(row[5]), row[6]),
                ComparedText(row[1], row[7], row[8], row[9], frozenset(row[10]), row[11]),
                row[12],
            )
            for row in cursor.fetchall()
        ]
