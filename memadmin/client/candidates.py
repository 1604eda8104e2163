"""Query for candidate memories of a run, used by agents under their role and by the console's preview.

It repeats the conditions of the agents' row policy, so that the preview, whose role sees every row, returns the same. A
subject's own memories are compared one by one, which is exact and quick for the thousands that one has; shared memories
are found through their index. With an external vector index, FIND_NAMED looks up the memories that it returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import isfinite
from typing import Any
from uuid import UUID

from memadmin.client.embedding import Embedder, compare
from memadmin.client.vector_lookup import Near

LIMIT = 40
"""Number of candidates of each ranking, by meaning and by words."""

READ_ON = """(
    SELECT set_config('hnsw.iterative_scan', 'strict_order', true) FROM pg_extension
    WHERE extname = 'vector' AND string_to_array(substring(extversion from '^[0-9]+[.][0-9]+'), '.')::int[] >= '{0,8}'
)"""
"""Lets the vector index continue when the nearest memories are none that this run may use: by itself it returns 40
and stops there. pgvector can since 0.8.
"""

SET_RUN = f"""
SELECT set_config('memadmin.subject', %(subject)s, true), set_config('memadmin.agent', %(agent)s, true),
       set_config('plan_cache_mode', 'force_generic_plan', true), {READ_ON}
"""
"""Sets the run's subject until the end of the transaction, for the row policies. Also avoids that FIND, prepared once
on a connection, is planned each time, which takes longer than to run it.
"""

HAS_VECTORS = """
SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('memories_app_memory') AND attname = 'embedding'
               AND atttypid = to_regtype('vector'))
"""
"""Query: true if the column of vectors has pgvector's type, and this role's search path finds that type."""

MAY_RECALL = """
    status = 'approved'
    AND (valid_from IS NULL OR valid_from <= coalesce(%(as_of)s::timestamptz, now()))
    AND (valid_until IS NULL OR valid_until > coalesce(%(as_of)s::timestamptz, now()))
    AND (agents = '{}' OR %(agent)s = ANY (agents))
"""

COLUMNS = "id, version, kind, key, statement, subject_id, is_verified, provenance, decided_at, words"

DISTANCE = "CASE WHEN embedder = %(embedder)s THEN embedding <=> %(vector)s::vector END AS distance"

READ = """id, version, kind, key, statement, subject_id, is_verified, provenance, decided_at, 1 - distance, lexemes,
       ARRAY(SELECT unnest(tsvector_to_array(words)) INTERSECT SELECT unnest(lexemes))"""

NEAR = f"""
    SELECT {COLUMNS}, {DISTANCE} FROM memories_app_memory
    WHERE subject_id IS NULL AND embedder = %(embedder)s AND {MAY_RECALL}
    ORDER BY embedding <=> %(vector)s::vector LIMIT %(limit)s
"""

# An index may be outdated: its result for another text than the memory has now does not count.
NAMED_DISTANCE = "CASE WHEN embedder = %(embedder)s AND content_hash = named_hash THEN named_distance END AS distance"

NAMED_NEAR = f"""
    SELECT {COLUMNS}, {NAMED_DISTANCE} FROM memories_app_memory JOIN named ON named_id = id
    WHERE subject_id IS NULL AND embedder = %(embedder)s AND {MAY_RECALL}
    ORDER BY named_distance LIMIT %(limit)s
"""


def _find(memories: str, distance: str, near: str, named: str = "") -> str:
    return f"""
WITH {named} asked AS MATERIALIZED (
    SELECT replace(plainto_tsquery('english', %(query)s)::text, ' & ', ' | ')::tsquery AS terms,
           tsvector_to_array(to_tsvector('english', %(query)s)) AS lexemes
), own AS MATERIALIZED (
    SELECT {COLUMNS}, {distance} FROM {memories}
    WHERE subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]) AND {MAY_RECALL}
), near AS MATERIALIZED (
    {near}
), found AS (
    (SELECT * FROM own WHERE distance IS NOT NULL ORDER BY distance, id LIMIT %(limit)s)
    UNION ALL
    (SELECT own.* FROM own, asked WHERE own.words @@ asked.terms
     ORDER BY ts_rank_cd(own.words, asked.terms, 1) DESC, id LIMIT %(limit)s)
    UNION ALL
    (SELECT * FROM own ORDER BY decided_at DESC NULLS LAST, id LIMIT %(limit)s)
    UNION ALL
    SELECT * FROM near WHERE distance <= %(farthest_shared)s
    UNION ALL
    (SELECT {COLUMNS}, {distance} FROM {memories} CROSS JOIN asked
     WHERE subject_id IS NULL AND words @@ asked.terms AND {MAY_RECALL}
     ORDER BY ts_rank_cd(words, asked.terms, 1) DESC, id LIMIT %(limit)s)
)
SELECT DISTINCT ON (id) {READ} FROM found, asked ORDER BY id
"""


FIND = _find("memories_app_memory", DISTANCE, NEAR)

WITHOUT_DISTANCE = "NULL::float8 AS distance"

FIND_BY_WORDS = _find(
    "memories_app_memory",
    WITHOUT_DISTANCE,
    f"SELECT {COLUMNS}, {WITHOUT_DISTANCE} FROM memories_app_memory WHERE false",
)
"""Like FIND without a vector, also for databases without pgvector."""

FIND_NAMED = _find(
    "memories_app_memory LEFT JOIN named ON named_id = id",
    NAMED_DISTANCE,
    NAMED_NEAR,
    """named AS MATERIALIZED (
    SELECT * FROM unnest(%(named)s::uuid[], %(distances)s::float8[], %(hashes)s::text[])
        AS given (named_id, named_distance, named_hash)
),""",
)
"""Like FIND, with the distances from another index; see `naming`."""


def _this(distance: str) -> str:
    return f"""
WITH asked AS (SELECT tsvector_to_array(to_tsvector('english', %(query)s)) AS lexemes)
SELECT {READ} FROM (SELECT {COLUMNS}, {distance} FROM memories_app_memory WHERE id = %(memory)s) AS this, asked
"""


THIS, THIS_BY_WORDS = _this(DISTANCE), _this(WITHOUT_DISTANCE)
"""One memory as the candidate that it would be, approved or not; for the console, since agents see no proposal."""

FARTHEST_SHARED = 0.8
"""Shared memories are recalled only if they are related to the query: within this cosine distance, or by a word."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that a run may use. `likeness` is the cosine to the query, None where it was not compared; the
    words are stems without those that every text has. `word_likeness` is that of its words to the query's, 0 to 1, None
    where the embedder has no vectors of words.
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
    word_likeness: float | None = None

    @property
    def is_explicit(self) -> bool:
        return self.provenance == "explicit"

    @property
    def is_to_the_point(self) -> bool:
        """True if it is related to the query; shared memories are recalled only then."""
        return bool(self.found_words) or (self.likeness is not None and 1 - self.likeness <= FARTHEST_SHARED)


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
    """The parameters of FIND. Without a vector words and age decide alone. The console may ask for memories valid at
    another time than now; the row policies show agents those valid now.
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


def naming(near: Iterable[Near]) -> dict[str, Any]:
    """Parameters of FIND_NAMED beside those of FIND."""
    named = {each.id: each for each in near if isfinite(each.likeness)}
    return {
        "named": list(named),
        "distances": [1 - each.likeness for each in named.values()],
        "hashes": [each.content_hash for each in named.values()],
    }


def read(rows: Iterable[Sequence[Any]]) -> list[Candidate]:
    """Rows of FIND as candidates."""
    return [Candidate(*row) for row in rows]


def with_likeness(found: Sequence[Candidate], query: str, embedder: Embedder) -> list[Candidate]:
    """The candidates with their likeness to the query, in meaning and in words. They are unchanged, with the cosines of
    the database or the index, if the embedder has no vectors of words.

    Takes about two milliseconds for ten candidates. Needs all of them: a word that few candidates have weighs more.
    """
    compared = compare(embedder, query, [each.statement for each in found])
    if compared is None:
        return list(found)
    return [
        replace(each, likeness=likeness.meaning, word_likeness=likeness.words)
        for each, likeness in zip(found, compared, strict=True)
    ]
