"""Which of two memories say the same, and which contradict each other. Pure: texts and likenesses in, pairs out.

A pair is a hint for who decides, and no decision: nothing is merged or dropped because of one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

NEAR = 0.8
"""Cosine similarity from which two texts say nearly the same. With the offline embedder "drinks tea in the morning" and
"drinks tea every morning" come to 0.97, the same said of two orders to 0.78, of two seats to 0.71. A text and its
negation come to 0.97, too: a person has to look."""

BETWEEN_WORDS = re.compile(r"[\W_]+")


class Hint(StrEnum):
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class ComparedText:
    """What of a memory is compared. Whose it is was settled before: only those about one subject, or none, meet."""

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
    """Those that a reviewer should see side by side, in the order given. The number is the cosine similarity of the
    two, None where they have no vectors that can be compared."""
    return [
        Pair(one.id, other.id, hint) for one, other, likeness in compared if (hint := hint_for(one, other, likeness))
    ]


def hint_for(one: ComparedText, other: ComparedText, likeness: float | None) -> Hint | None:
    """The same words come before a contradiction, and that before a likeness: "prefers the aisle" and "prefers the
    window" are much alike."""
    if one.id == other.id or not _has_reader_in_common(one, other):
        return None
    is_same = one.content_hash == other.content_hash != "" or normalized(one.statement) == normalized(other.statement)
    if is_same:
        return Hint.DUPLICATE
    if one.key and (one.kind, one.key) == (other.kind, other.key):
        return Hint.CONTRADICTION
    return Hint.NEAR_DUPLICATE if likeness is not None and likeness >= NEAR else None


def normalized(statement: str) -> str:
    """Its words alone, without case, accents' two ways of being written, and what stands between words."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", statement).casefold())
    # What has no word in any alphabet, such as a row of emoji, is compared as it is.
    return BETWEEN_WORDS.sub(" ", folded).strip() or folded


def _has_reader_in_common(one: ComparedText, other: ComparedText) -> bool:
    """No name of an agent means all of them."""
    return not one.agents or not other.agents or bool(one.agents & other.agents)
