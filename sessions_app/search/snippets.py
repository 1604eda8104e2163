"""Snippet of a stored item around a match, as readable text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sessions_app.masking import Masker
from sessions_app.search_syntax import ParsedSearch
from sessions_app.stores.search_protocol import READ_CHARACTERS
from sessions_app.timeline.decode import NotJson, parse_json, printable

BEFORE_CHARACTERS = 60
AFTER_CHARACTERS = 140
HITS_MARKED = 20

STRUCTURE = {"type", "role", "status", "object"}
"""Members with words of the SDK's own, which are not searched."""

# Only from the beginning of a run of backslashes, which may be long.
_NESTED_ESCAPE = re.compile(r"(?<!\\)\\{2,}+(?=u[0-9a-fA-F]{4})")
_NESTED_BREAK = re.compile(r"(?<!\\)\\{2,}+[bfnrt]")
_QUOTE = re.compile(r"(?<!\\)\\++(?=\")")


@dataclass(frozen=True, slots=True)
class Snippet:
    """Pieces of text, in order, each with whether it matches. Plain text: a page has to escape it."""

    parts: tuple[tuple[str, bool], ...]

    def __str__(self) -> str:
        return "".join(text for text, _ in self.parts)


def snippet(raw: str, pattern: re.Pattern[str]) -> Snippet:
    """Text around the first match in a stored item, or its beginning when the words are not in one place.

    Of an item that was read in part `raw` is the beginning. Masked values do not match, and are not shown. Never
    raises.
    """
    beginning = ""
    masked, _ = Masker().json(raw, is_beginning=len(raw) >= READ_CHARACTERS)
    for text in readable_texts(masked):
        text = " ".join(text.split())
        beginning = beginning or text
        if hit := pattern.search(text):
            return _around(text, hit, pattern)
    return Snippet(((_cut(beginning, AFTER_CHARACTERS), False),)) if beginning else Snippet(())


def is_shown(raw: str, parsed: ParsedSearch) -> bool:
    """True if a stored item matches for a user who reads it masked. `raw` may be its beginning. Never raises."""
    masked, _ = Masker().json(raw, is_beginning=len(raw) >= READ_CHARACTERS)
    return parsed.matches_text("\n".join(readable_texts(masked)))


def readable_texts(raw: str) -> Iterator[str]:
    """Every string in a stored item, decoded, in stored order; the text itself if it is not JSON.

    Text that is JSON once more (tool outputs) has its escapes undone, but stays in one piece.
    """
    if "\\\\" in raw:  # most have no JSON within JSON
        raw = _NESTED_BREAK.sub(" ", _NESTED_ESCAPE.sub(r"\\", raw))
    try:
        value = parse_json(raw, is_beginning=True)
    except NotJson:
        yield printable(raw)
    else:
        yield from _strings_in(value)


def _strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield _QUOTE.sub("", value) if "\\" in value else value
    elif isinstance(value, list):
        for member in value:
            yield from _strings_in(member)
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in STRUCTURE:
                yield from _strings_in(member)


def _around(text: str, hit: re.Match[str], pattern: re.Pattern[str]) -> Snippet:
    start = max(hit.start() - BEFORE_CHARACTERS, 0)
    if start:
        # At the beginning of a word, unless it is endless.
        start = max(text.rfind(" ", 0, start) + 1, start - BEFORE_CHARACTERS)
    window = text[start:]
    shown = _cut(window, max(hit.end() - start, BEFORE_CHARACTERS) + AFTER_CHARACTERS)
    parts: list[tuple[str, bool]] = [("…", False)] if start else []
    place = 0
    for marked in islice(pattern.finditer(shown), HITS_MARKED):
        parts += [(shown[place : marked.start()], False), (marked[0], True)]
        place = marked.end()
    parts.append((shown[place:], False))
    return Snippet(tuple((piece, is_hit) for piece, is_hit in parts if piece))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length].rstrip() + "…"
