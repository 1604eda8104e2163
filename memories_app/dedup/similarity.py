"""Detection of duplicate and contradicting memories. Pure: texts and similarities in, pairs out.

A pair is a hint for reviewers: nothing is merged or dropped because of one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

NEAR = 0.8
"""Cosine similarity from which two texts count as near duplicates.

With the offline embedder "drinks tea in the morning" and "drinks tea every morning" have 0.97, equal sentences about
two orders 0.78, about two seats 0.71. A text and its negation have 0.97, too: a person must decide."""

BETWEEN_WORDS = re.compile(r"[\W_]+")


class Hint(StrEnum):
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class ComparedText:
    """The compared values of a memory. Only memories about the same subject, or none, are compared."""

    id: UUID
    kind: str
    key: str
    statement: str
    agents: frozenset[str] = frozenset()
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    one: UUID
    other: UUID
    hint: Hint


def pairs(compared: Iterable[tuple[ComparedText, ComparedText, float | None]]) -> list[Pair]:
    """Pairs that a reviewer should see side by side, in the given order. The number is their cosine similarity, None
    without comparable vectors."""
    return [
        Pair(one.id, other.id, hint) for one, other, likeness in compared if (hint := hint_for(one, other, likeness))
    ]


def hint_for(one: ComparedText, other: ComparedText, likeness: float | None) -> Hint | None:
    """The hint for a pair. Equal words precede a contradiction, and that precedes similarity: "prefers the aisle" and
    "prefers the window" are very similar."""
    if one.id == other.id or not _has_reader_in_common(one, other):
        return None
    is_same = one.content_hash == other.content_hash != "" or normalized(one.statement) == normalized(other.statement)
    if is_same:
        return Hint.DUPLICATE
    if one.key and (one.kind, one.key) == (other.kind, other.key):
        return Hint.CONTRADICTION
    return Hint.NEAR_DUPLICATE if likeness is not None and likeness >= NEAR else None


def normalized(statement: str) -> str:
    """The words of a statement, without case, Unicode composition, and separators."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", statement).casefold())
    # A text without letters of any alphabet, such as a row of emoji, is compared unchanged.
    return BETWEEN_WORDS.sub(" ", folded).strip() or folded


def _has_reader_in_common(one: ComparedText, other: ComparedText) -> bool:
    """Whether an agent may recall both; an empty list means all agents."""
    return not one.agents or not other.agents or bool(one.agents & other.agents)
