"""Difference of two texts, word by word. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher

WORDS = re.compile(r"\s+|\w+|[^\w\s]+")

MOST_PAIRS = 200_000
"""Maximum of pairs of equal words, one in each text. Very repetitive texts are shown as replaced: their difference
would take seconds."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words: `kept`, `added` or `removed`."""

    what: str
    text: str


def changes(before: str, after: str) -> list[Piece]:
    """The words of both in order, those removed before those that took their place."""
    one, other = WORDS.findall(before), WORDS.findall(after)
    if _pairs(one, other) > MOST_PAIRS:
        return _changed(before, after)
    pieces: list[Piece] = []
    removed = added = ""
    for what, left, left_end, right, right_end in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        old, new = "".join(one[left:left_end]), "".join(other[right:right_end])
        # A single unchanged space between two changes is merged into them, for readability.
        if what != "equal" or ((removed or added) and old.isspace()):
            removed, added = removed + old, added + new
            continue
        pieces += [*_changed(removed, added), Piece("kept", old)]
        removed = added = ""
    return pieces + _changed(removed, added)


def _changed(removed: str, added: str) -> list[Piece]:
    return [piece for piece in (Piece("removed", removed), Piece("added", added)) if piece.text]


def _pairs(one: list[str], other: list[str]) -> int:
    counts = Counter(other)
    return sum(counts[word] for word in one)
