"""What changed between two texts, word by word. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words: `kept`, `added` or `removed`."""

    what: str
    text: str


def changes(before: str, after: str) -> list[Piece]:
    """The words of both in order, those removed before those that took their place."""
    return list(_pieces(WORDS.findall(before), WORDS.findall(after)))


def _pieces(before: list[str], after: list[str]) -> Iterator[Piece]:
    for what, left, left_end, right, right_end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "equal":
            yield Piece("kept", "".join(before[left:left_end]))
            continue
        if left < left_end:
            yield Piece("removed", "".join(before[left:left_end]))
        if right < right_end:
            yield Piece("added", "".join(after[right:right_end]))
