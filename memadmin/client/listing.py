"""Approved memories that a run may use, one by its id or page by page: the statements, and what they return.

They repeat the conditions of the agents' row policy, like `candidates.py`: a program that is not under the agents' role
gets no more than an agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from memadmin.client.candidates import MAY_RECALL
from memadmin.client.proposal_results import ProposalRefused

MOST_LISTED = 200
"""Memories of a page, whatever limit a program asks for."""

COLUMNS = """id, version, kind, key, statement, data, subject_id IS NULL, is_verified, provenance, source, confidence,
       valid_from, valid_until, decided_at"""

GET = f"""
SELECT {COLUMNS} FROM memories_app_memory
WHERE id = %(memory)s AND (subject_id IS NULL OR subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[]))
  AND {MAY_RECALL}
"""

DECIDED = "coalesce(decided_at, '-infinity')"


def _list(whose: str) -> str:
    return f"""
SELECT {COLUMNS} FROM memories_app_memory
WHERE {whose} AND {MAY_RECALL} AND (%(kinds)s::text[] = '{{}}' OR kind = ANY (%(kinds)s::text[]))
  AND (%(after)s::uuid IS NULL OR ({DECIDED}, id) < (%(decided)s::timestamptz, %(after)s::uuid))
ORDER BY {DECIDED} DESC, id DESC LIMIT %(limit)s
"""


LIST_OWN = _list("subject_id = ANY ((SELECT memadmin_run_subjects())::uuid[])")
LIST_SHARED = _list("subject_id IS NULL")


@dataclass(frozen=True, slots=True)
class ApprovedMemory:
    """An approved memory, as agents may read it. True in a condition, where ProposalRefused is false."""

    id: UUID
    version: int
    kind: str
    key: str
    statement: str
    data: Mapping[str, Any]
    is_shared: bool
    is_verified: bool
    """Approved by a person, not by a rule."""
    provenance: str
    source: str
    confidence: float
    valid_from: datetime | None
    valid_until: datetime | None
    decided_at: datetime | None


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Memories, the latest approval first. `cursor` leads to the next page; it is empty on the last one."""

    memories: Sequence[ApprovedMemory] = field(default_factory=tuple)
    cursor: str = ""
    refused: ProposalRefused | None = None


def parameters(*, kinds: Iterable[str], limit: int, cursor: str, agent: str) -> dict[str, Any]:
    """Parameters of LIST_OWN and LIST_SHARED, which find one memory more than a page has, if there is one. Raises
    ValueError for an invalid cursor.
    """
    decided, _, after = cursor.partition("|")
    return {
        "kinds": list(kinds),
        "limit": page_size(limit) + 1,
        "after": UUID(after) if cursor else None,
        "decided": datetime.fromisoformat(decided) if decided else "-infinity",
        "agent": agent,
        "as_of": None,
    }


def page_size(limit: int) -> int:
    return max(1, min(limit, MOST_LISTED))


def page(found: Sequence[ApprovedMemory], limit: int) -> MemoryPage:
    """The page for memories that were found with `parameters`."""
    some = tuple(found[: page_size(limit)])
    if len(found) == len(some):
        return MemoryPage(some)
    last = some[-1]
    return MemoryPage(some, f"{last.decided_at.isoformat() if last.decided_at else ''}|{last.id}")
