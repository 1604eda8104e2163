"""Spans of JSON: offsets of values in a text, or in the bytes of a file, so that everything else stays unchanged.

`members`, `elements` and `each_element` decode the values that they pass, and accept only JSON. `array_entries` and
`line_entries` look only for brackets, commas, quotation marks and line breaks, so that broken parts are entries, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

_BLANK = re.compile(r"[ \t\r\n]*")
_COLON = re.compile(r"[ \t\r\n]*:[ \t\r\n]*")
_BLANK_BYTES = b" \t\r\n"

# Possessive, so that a string without an end costs one look and not many.
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{},"]', re.DOTALL)

_lenient = json.JSONDecoder(strict=False)


class Part(NamedTuple):
    """Start and end of a value in a text, or of an entry in a file."""

    start: int
    end: int


class NotReadable(ValueError):
    """The text is not JSON, or is nested too deeply."""


class ArrayNotContinued(ValueError):
    """After an element there is neither a comma nor the end of the array."""

    def __init__(self, place: int) -> None:
        super().__init__("not JSON: the array does not go on or end here")
        self.place = place


def skip_blank(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    return blank.end() if blank else place


def colon_behind(text: str, place: int) -> int:
    """Start of the value behind a colon, if the next token is one; otherwise -1."""
    colon = _COLON.match(text, place)
    return colon.end() if colon else -1


# --- JSON as a text ---------------------------------------------------------------------------------------------------


def each_element(text: str, opening: int, decoder: json.JSONDecoder = _lenient) -> Iterator[tuple[Part, Any]]:
    """Span and value of each element of the array with this opening bracket, one at a time.

    Raises the exceptions of the decoder, and ArrayNotContinued.
    """
    place = skip_blank(text, opening + 1)
    if text[place : place + 1] == "]":
        return
    while True:
        value, end = decoder.raw_decode(text, place)
        yield Part(place, end), value
        place = skip_blank(text, end)
        if text[place : place + 1] == "]":
            return
        if text[place : place + 1] != ",":
            raise ArrayNotContinued(place)
        place = skip_blank(text, place + 1)


def elements(text: str, start: int = 0) -> list[Part]:
    """Spans of the elements of an array; none for anything else. Raises NotReadable."""
    place = skip_blank(text, start)
    return _array(text, place)[0] if text[place : place + 1] == "[" else []


def members(text: str, start: int = 0) -> dict[str, Part]:
    """Span of the value of each member of an object; none for anything else. Raises NotReadable."""
    found: dict[str, Part] = {}
    place = skip_blank(text, start)
    if text[place : place + 1] != "{":
        return found
    place = skip_blank(text, place + 1)
    while text[place : place + 1] == '"':
        try:
            name, place = scanstring(text, place + 1, False)
        except ValueError as problem:
            raise NotReadable from problem
        place = colon_behind(text, place)
        if place < 0:
            raise NotReadable
        end = _array(text, place)[1] if text[place : place + 1] == "[" else _end_of(text, place)
        found[name] = Part(place, end)
        place = skip_blank(text, end)
        if text[place : place + 1] != ",":
            break
        place = skip_blank(text, place + 1)
    if text[place : place + 1] != "}":
        raise NotReadable
    return found


def is_readable(text: str) -> bool:
    try:
        return skip_blank(text, _end_of(text, skip_blank(text, 0))) == len(text)
    except NotReadable:
        return False


def value_of(text: str) -> Any:
    """Decoded value. Raises NotReadable."""
    return _decoded(text, skip_blank(text, 0))[0]


def without(text: str, array: Part, gone: Collection[int]) -> str:
    """An array without the elements at some indexes; the others stay unchanged."""
    kept = [text[part.start : part.end] for index, part in enumerate(elements(text, array.start)) if index not in gone]
    return f"{text[: array.start]}[{', '.join(kept)}]{text[array.end :]}"


def with_replaced(text: str, part: Part, new: str) -> str:
    return f"{text[: part.start]}{new}{text[part.end :]}"


def _array(text: str, opening: int) -> tuple[list[Part], int]:
    """Spans of the elements, and the end of the array. The values are not kept, to save memory."""
    try:
        found = [part for part, _ in each_element(text, opening)]
    except (ValueError, RecursionError) as problem:
        raise NotReadable from problem
    return found, skip_blank(text, found[-1].end if found else opening + 1) + 1


def _end_of(text: str, place: int) -> int:
    return _decoded(text, place)[1]


def _decoded(text: str, place: int) -> tuple[Any, int]:
    try:
        return _lenient.raw_decode(text, place)
    except (ValueError, RecursionError) as problem:
        raise NotReadable from problem


# --- entries of a file ------------------------------------------------------------------------------------------------


def line_entries(content: bytes, start: int) -> Iterator[Part]:
    """Spans of the lines that are not blank, without line breaks."""
    size = len(content)
    while start < size:
        end = content.find(b"\n", start)
        end = size if end < 0 else end
        yield from _trimmed(content, start, end)
        start = end + 1


def array_entries(content: bytes, start: int) -> Iterator[Part]:
    """Spans of the entries of an array, broken ones included, and of all that follows its end."""
    place, depth = content.index(b"[", start) + 1, 1
    for token in _TOKEN.finditer(content, place):
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
                if depth == 0:
                    yield from _trimmed(content, place, token.start())
                    place = token.end()
                    break
            case b"," if depth == 1:
                yield from _trimmed(content, place, token.start())
                place = token.end()
            case b'"':
                break  # a string without an end
    yield from _trimmed(content, place, len(content))


def _trimmed(content: bytes, start: int, end: int) -> Iterator[Part]:
    """The span without surrounding blanks; none if it has only blanks."""
    text = content[start:end]
    start += len(text) - len(text.lstrip(_BLANK_BYTES))
    end -= len(text) - len(text.rstrip(_BLANK_BYTES))
    if end > start:
        yield Part(start, end)
