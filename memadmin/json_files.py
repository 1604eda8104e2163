"""The values in a file of JSON or JSON Lines, gzipped or not, by the file's content and not by its name."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain

from memadmin.json_spans import ArrayNotContinued, each_element, skip_blank

LONGEST_LINE_BYTES = 512 * 1024**2
"""Longer lines could exceed PostgreSQL's message limit, which ends the connection."""

LONG_NUMBER = "a number has thousands of digits"

# A lone surrogate: valid decoded text cannot contain it, only bytes that are not UTF-8 produce one.
_TOO_LONG = "\udcff too long"
_GZIP_MAGIC = b"\x1f\x8b"
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class UnreadableValue:
    """An unreadable part of the file, with the reason. Quotes no content."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class JsonValue:
    line: int
    """Line at which it begins."""
    value: object


@dataclass(frozen=True, slots=True)
class Array:
    """A document that is an array. Its elements are decoded lazily, once."""

    line: int
    elements: Iterator[JsonValue | UnreadableValue]


def documents(file: BufferedReader) -> Iterator[JsonValue | Array | UnreadableValue]:
    """Each line of JSON Lines, or the single document of several lines; unreadable parts are reported and skipped.

    JSON Lines are read one by one; a document of several lines is held in memory.
    """
    lines = _Lines(file)
    for number, first in lines:
        if _is_json(first):
            yield from _each_line(chain([(number, first)], lines))
        elif first.lstrip().startswith("["):
            yield Array(number, _elements((first + lines.rest()).lstrip(), number))
        else:
            whole = first + lines.rest()
            # A document of several lines; or JSON Lines, the first of which is broken.
            yield from _each_line([(number, whole)] if _is_json(whole) else enumerate(whole.split("\n"), number))
    if lines.damage:
        yield lines.damage


def values(file: BufferedReader) -> Iterator[JsonValue | UnreadableValue]:
    """The same values, with the elements of arrays instead of the arrays."""
    for document in documents(file):
        if isinstance(document, Array):
            yield from document.elements
        elif isinstance(document, JsonValue) and isinstance(document.value, list):
            yield from (JsonValue(document.line, element) for element in document.value)
        else:
            yield document


def _each_line(lines: Iterable[tuple[int, str]]) -> Iterator[JsonValue | UnreadableValue]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            yield JsonValue(number, _parse(line.rstrip()))
        except ValueError as problem:
            yield UnreadableValue(number, str(problem))


class _Lines:
    """The lines of a file with their numbers, from the first that is not blank; stops where a gzip file is damaged.

    Bytes that are not UTF-8 are decoded as lone surrogates, so that one bad line does not end the parsing.
    """

    def __init__(self, file: BufferedReader) -> None:
        is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
        self._stream: BufferedReader | gzip.GzipFile = gzip.GzipFile(fileobj=file) if is_gzip else file
        self._lines = self._read()
        self.damage: UnreadableValue | None = None

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self._lines

    def rest(self) -> str:
        """The rest of the file as one text with its line breaks."""
        return "".join(line for _, line in self._lines)

    def _read(self) -> Iterator[tuple[int, str]]:
        number, has_begun = 0, False
        try:
            for number, raw in enumerate(iter(self._next_line, b""), 1):
                line = raw.decode("utf-8", "surrogateescape")
                if number == 1:
                    line = line.removeprefix("\ufeff")
                # Later blank lines stay: inside a document the number of a line is found by counting.
                if has_begun or line.strip():
                    has_begun = True
                    yield number, line
        except (EOFError, zlib.error, gzip.BadGzipFile):
            self.damage = UnreadableValue(number + 1, "the compressed file is damaged or cut off from here on")

    def _next_line(self) -> bytes:
        """The next line; a marker for a line that is too long, whose rest is skipped."""
        raw = self._stream.readline(LONGEST_LINE_BYTES + 1)
        if len(raw) <= LONGEST_LINE_BYTES:
            return raw
        while raw and not raw.endswith(b"\n"):
            raw = self._stream.readline(LONGEST_LINE_BYTES)
        return f"{_TOO_LONG}\n".encode("utf-8", "surrogateescape")


def _elements(text: str, line: int) -> Iterator[JsonValue | UnreadableValue]:
    """Elements of an array that begins the text, up to the first fault."""
    counted, end = 0, 0
    try:
        for part, value in each_element(text, 0, _decoder):
            line += text.count("\n", counted, part.start)
            counted, end = part.start, part.end
            yield UnreadableValue(line, "not UTF-8") if _NOT_UTF8.search(text, *part) else JsonValue(line, value)
    except ArrayNotContinued as problem:
        yield UnreadableValue(line + text.count("\n", counted, problem.place), str(problem))
    except json.JSONDecodeError as problem:
        # A trailing comma after the last element loses no data.
        if not (end and text[problem.pos : problem.pos + 1] == "]" and _begin_behind(text, end) == problem.pos):
            broken_at = line + text.count("\n", counted, problem.pos)
            yield UnreadableValue(broken_at, f"not JSON: {problem.msg}; the rest of the array cannot be read")
    except (ValueError, RecursionError) as problem:
        broken_at = line + text.count("\n", counted, _begin_behind(text, end))
        yield UnreadableValue(broken_at, f"{_sentence(problem)}; the rest of the array cannot be read")


def _begin_behind(text: str, end: int) -> int:
    """Start of the next element, behind the opening bracket at 0 or behind the comma after another element."""
    return skip_blank(text, skip_blank(text, end) + 1)


def _is_json(text: str) -> bool:
    try:
        _parse(text)
    except ValueError:
        return False
    return True


def _parse(text: str) -> object:
    """Decodes JSON; every fault is a ValueError whose message is the reason to report."""
    if text == _TOO_LONG:
        raise ValueError(f"longer than {LONGEST_LINE_BYTES // 1024**2} MB")
    if _NOT_UTF8.search(text):
        raise ValueError("not UTF-8")
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as problem:
        raise ValueError(f"not JSON: {problem.msg} (column {problem.colno})") from None
    except (ValueError, RecursionError) as problem:
        raise ValueError(_sentence(problem)) from None


def _sentence(problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return "nested too deeply"
    return LONG_NUMBER if is_long_number(problem) else str(problem)


def is_long_number(problem: Exception) -> bool:
    """Whether Python refused to decode a whole number for its length."""
    return str(problem).startswith("Exceeds the limit")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"not JSON: {name} is not a number")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)
