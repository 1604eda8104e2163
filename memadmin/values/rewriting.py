"""Texts derived from another text, with the position of each character in the original.

Detection reads such a text where invisible characters or JSON escapes divide a value, and masks the original.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

# Characters without a width: they divide a value for a program and not for a reader.
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]+"
)

_ESCAPE = re.compile(
    r"\\(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})|u(?P<code>[0-9a-fA-F]{4})|.)",
    re.DOTALL,
)
_SHORT = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class RewrittenText:
    """A text in which each match of an expression is replaced."""

    def __init__(self, original: str, pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]) -> None:
        pieces: list[str] = []
        # Equal distances between the two texts begin at these positions.
        self._here, self._there = [0], [0]
        length = place = 0
        for match in pattern.finditer(original):
            new = replacement(match)
            pieces += [original[place : match.start()], new]
            length += match.start() - place
            self._here += [length, length + len(new)]
            self._there += [match.start(), match.end()]
            length, place = length + len(new), match.end()
        self.text = "".join(pieces) + original[place:]

    def in_original(self, start: int, end: int) -> tuple[int, int]:
        """Position in the original, with what was removed at its end."""
        return self._place(start), self._place(end)

    def _place(self, position: int) -> int:
        index = bisect_right(self._here, position) - 1
        return self._there[index] + position - self._here[index]


def without_invisible(text: str) -> RewrittenText | None:
    """The text without invisible characters; None if it has none."""
    if text.isascii() or not INVISIBLE.search(text):
        return None
    return RewrittenText(text, INVISIBLE, lambda match: "")


def without_escapes(text: str) -> RewrittenText:
    """A part of a JSON text with its escapes decoded."""
    return RewrittenText(text, _ESCAPE, _decoded)


def _decoded(match: re.Match[str]) -> str:
    if match["code"]:
        return chr(int(match["code"], 16))
    if match["high"]:
        return chr(0x10000 + ((int(match["high"], 16) & 0x3FF) << 10) + (int(match["low"], 16) & 0x3FF))
    return _SHORT.get(match[0][1], match[0][1])
