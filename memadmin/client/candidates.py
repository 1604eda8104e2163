"""Which memories could help a run: one statement, asked by agents under their role and by the console's preview.

It says itself what the agents' row policy says, so that the preview, whose role sees every row, shows the same. A
subject's own memories are compared one by one, which is exact and quick for the thousands that one has; those that all
share are found through their index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

LIMIT = 40
"""Of how many each ranking, by meaning and by words, names the best."""

SET_RUN = "SELECT set_config('memadmin.subject', %(subject)s, true), set_config('memadmin.agent', %(agent)s, true)"
"""Whose run it is, until the end of the transaction: what the row policies go by."""

MAY_RECALL = """
    status = 'approved'
    AND (valid_from IS NULL OR valid_from <= coalesce(%(as_of)s::timestamptz, now()))
    AND (valid_until IS NULL OR valid_until > coalesce(%(as_of)s::timestamptz, now()))
    AND (agents = '{}' OR %(agent)s = ANY (agents))
"""

FIND = f"""
WITH asked AS (
    SELECT replace(plainto_tsquery('english', %(query)s)::text, ' & ', ' | ')::tsquery AS words,
           tsvector_to_array(to_tsvector('english', %(query)s)) AS lexemes
), own AS MATERIALIZED (
    SELECT id, words, CASE WHEN embedder = %(embedder)s THEN embedding <=> %(vector)s::vector END AS distance,
           decided_at
    FROM memories_app_memory
    WHERE subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]) AND {MAY_RECALL}
), shared_near AS MATERIALIZED (
    SELECT id, embedding <=> %(vector)s::vector AS distance FROM memories_app_memory
    WHERE subject_id IS NULL AND embedder = %(embedder)s AND {MAY_RECALL}
    ORDER BY embedding <=> %(vector)s::vector LIMIT %(limit)s
), shared_worded AS MATERIALIZED (
    SELECT m.id, ts_rank_cd(m.words, asked.words, 1) AS fit FROM memories_app_memory AS m, asked
    WHERE m.subject_id IS NULL AND m.words @@ asked.words AND {MAY_RECALL}
    ORDER BY fit DESC, m.id LIMIT %(limit)s
), meaning AS (
    SELECT id, distance FROM (
        SELECT id, distance FROM own WHERE distance IS NOT NULL
        UNION ALL SELECT id, distance FROM shared_near WHERE distance <= %(farthest_shared)s
    ) AS near ORDER BY distance, id LIMIT %(limit)s
), worded AS (
    SELECT id FROM (
        SELECT own.id, ts_rank_cd(own.words, asked.words, 1) AS fit FROM own, asked WHERE own.words @@ asked.words
        UNION ALL SELECT id, fit FROM shared_worded
    ) AS fitting ORDER BY fit DESC, id LIMIT %(limit)s
), latest AS (
    SELECT id FROM own ORDER BY decided_at DESC NULLS LAST, id LIMIT %(limit)s
)
SELECT m.id, m.version, m.kind, m.key, m.statement, m.subject_id, m.is_verified, m.provenance, m.decided_at,
       1 - meaning.distance, asked.lexemes,
       ARRAY(SELECT unnest(tsvector_to_array(m.words)) INTERSECT SELECT unnest(asked.lexemes))
FROM (SELECT id FROM meaning UNION SELECT id FROM worded UNION SELECT id FROM latest) AS found
JOIN memories_app_memory AS m USING (id)
LEFT JOIN meaning USING (id) CROSS JOIN asked
"""

FARTHEST_SHARED = 0.8
"""What all share is recalled only where it has to do with what was said: within this cosine distance, or by a word."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that a run may be told. `likeness` is the cosine to what was asked, None where it was not compared; the
    words are stems without those that every text has.
    """

    id: UUID
    version: int
    kind: str
    key: str
    statement: str
    subject_id: UUID | None
    is_verified: bool
    provenance: str
    decided_at: datetime | None
    likeness: float | None
    asked_words: Sequence[str]
    found_words: Sequence[str]

    @property
    def is_explicit(self) -> bool:
        return self.provenance == "explicit"


def run_of(subject: UUID | None, agent: str = "") -> dict[str, str]:
    """The parameters of SET_RUN."""
    return {"subject": str(subject or ""), "agent": agent}


def parameters(
    query: str,
    vector: Sequence[float] | None,
    *,
    embedder: str = "",
    agent: str = "",
    as_of: datetime | None = None,
    limit: int = LIMIT,
) -> dict[str, Any]:
    """The parameters of FIND. Without a vector words and age decide alone. What is valid at another time than now the
    console may ask; the row policies show agents what is valid now.
    """
    return {
        "query": query.replace("\x00", " "),
        "vector": None if vector is None else f"[{','.join(format(number, '.7g') for number in vector)}]",
        "embedder": embedder if vector is not None else "",
        "agent": agent,
        "as_of": as_of,
        "limit": limit,
        "farthest_shared": FARTHEST_SHARED,
    }


def read(rows: Iterable[Sequence[Any]]) -> list[Candidate]:
    """What FIND answered."""
    return [Candidate(*row) for row in rows]
