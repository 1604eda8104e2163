"""Finds the conversations in a file of JSON or JSON Lines, gzipped or not."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import chain
from typing import Any

SESSION_KEYS = ("session_id", "session", "conversation_id", "id")
"""Where a conversation may name its session; the first that is there counts."""

LONGEST_LINE_BYTES = 512 * 1024**2
"""Of a longer one PostgreSQL might be sent more than it takes at once, which ends the connection."""

# No text that was decoded can hold the second half of a pair without being taken for bytes that are no UTF-8.
_TOO_LONG = "\udcff too long"
_GZIP_MAGIC = b"\x1f\x8b"
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_SPACE = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class Conversation:
    line: int
    """Where in the file it begins."""
    session_id: str
    messages: Sequence[object]
    fields: Mapping[str, object] = field(default_factory=dict)
    """What stands beside the messages, for example the customer's id."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Something in the file that is no conversation, and why. Quotes no content."""

    line: int
    reason: str


def parse_conversations(file: BufferedReader) -> Iterator[Conversation | Unreadable]:
    """Every conversation of a file, in its order; what cannot be read is named and passed over.

    A file is JSON Lines (one conversation a line) or one JSON document (a conversation, or an array of them), by
    its content and not by its name. A conversation is an object with `messages`, or the bare array of them. One
    that names no session gets an id made from its content, the same every time.

    JSON Lines are read one by one; a document of several lines is held in memory.
    """
    lines = _Lines(file)
    for number, first in lines:
        if _is_json(first):
            yield from _json_lines(chain([(number, first)], lines))
        elif first.lstrip().startswith("["):
            yield from _array((first + lines.rest()).lstrip(), number)
        else:
            whole = first + lines.rest()
            try:
                value = _parse(whole)
            except ValueError:
                yield from _json_lines(enumerate(whole.split("\n"), number))
            else:
                yield from _conversations_in(value, number)
    if lines.damage:
        yield lines.damage


def parse_values(file: BufferedReader) -> Iterator[tuple[int, object] | Unreadable]:
    """Every value of such a file, with the line on which it begins: of JSON Lines each line, of an array each
    element, or else the one document."""
    lines = _Lines(file)
    for number, first in lines:
        if _is_json(first):
            yield from _values(chain([(number, first)], lines))
        elif first.lstrip().startswith("["):
            yield from _elements((first + lines.rest()).lstrip(), number)
        else:
            whole = first + lines.rest()
            # A document of several lines; or JSON Lines, the first of which is broken.
            yield from _values([(number, whole)] if _is_json(whole) else enumerate(whole.split("\n"), number))
    if lines.damage:
        yield lines.damage


def _values(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, object] | Unreadable]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = _parse(line.rstrip())
        except ValueError as problem:
            yield Unreadable(number, str(problem))
        else:
            yield from ((number, element) for element in value) if isinstance(value, list) else [(number, value)]


class _Lines:
    """The lines of a file with their numbers, from the first that is not blank; stops where a gzip file is damaged.

    Bytes that are no UTF-8 come as lone surrogates, so that one bad line does not end the parsing.
    """

    def __init__(self, file: BufferedReader) -> None:
        is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
        self._stream: BufferedReader | gzip.GzipFile = gzip.GzipFile(fileobj=file) if is_gzip else file
        self._lines = self._read()
        self.damage: Unreadable | None = None

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self._lines

    def rest(self) -> str:
        """What was not read yet, as one text that keeps its line breaks."""
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
            self.damage = Unreadable(number + 1, "the compressed file is damaged or cut off from here on")

    def _next_line(self) -> bytes:
        """Of a line that is too long only a word that says so; its end is read and forgotten."""
        raw = self._stream.readline(LONGEST_LINE_BYTES + 1)
        if len(raw) <= LONGEST_LINE_BYTES:
            return raw
        while raw and not raw.endswith(b"\n"):
            raw = self._stream.readline(LONGEST_LINE_BYTES)
        return f"{_TOO_LONG}\n".encode("utf-8", "surrogateescape")


def _json_lines(lines: Iterable[tuple[int, str]]) -> Iterator[Conversation | Unreadable]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            value = _parse(line.rstrip())
        except ValueError as problem:
            yield Unreadable(number, str(problem))
        else:
            yield from _conversations_in(value, number)


def _array(text: str, line: int) -> Iterator[Conversation | Unreadable]:
    """The elements of a JSON array, each with the line on which it begins."""
    elements = _elements(text, line)
    first = next(elements, None)
    if first is None:
        return
    if isinstance(first, tuple) and _is_message(first[1]):
        # The whole document is one conversation: without its last messages it would be another one.
        parts = [first, *elements]
        problems = [part for part in parts if isinstance(part, Unreadable)]
        yield from problems or _conversations_in([part[1] for part in parts if isinstance(part, tuple)], line)
        return
    for element in chain([first], elements):
        if isinstance(element, Unreadable):
            yield element
        else:
            yield from _conversations_in(element[1], element[0])


def _elements(text: str, line: int) -> Iterator[tuple[int, object] | Unreadable]:
    position, counted = 1, 0
    while True:
        position = _skip_space(text, position)
        line += text.count("\n", counted, position)
        counted = position
        if text[position : position + 1] == "]":
            return
        try:
            value, end = _decoder.raw_decode(text, position)
        except json.JSONDecodeError as problem:
            broken_at = line + text.count("\n", position, problem.pos)
            yield Unreadable(broken_at, f"not JSON: {problem.msg}; the rest of the array cannot be read")
            return
        except (ValueError, RecursionError) as problem:
            yield Unreadable(line, f"{_sentence(problem)}; the rest of the array cannot be read")
            return
        if _NOT_UTF8.search(text, position, end):
            yield Unreadable(line, "not UTF-8")
        else:
            yield line, value
        position = _skip_space(text, end)
        if text[position : position + 1] == ",":
            position += 1
        elif text[position : position + 1] != "]":
            broken_at = line + text.count("\n", counted, position)
            yield Unreadable(broken_at, "not JSON: the array does not go on or end here")
            return


def _conversations_in(value: object, line: int) -> Iterator[Conversation | Unreadable]:
    if isinstance(value, list) and not (value and _is_message(value[0])):
        for element in value:
            yield _conversation(element, line)
    else:
        yield _conversation(value, line)


def _conversation(value: object, line: int) -> Conversation | Unreadable:
    fields: Mapping[str, Any] = value if isinstance(value, dict) else {}
    messages = value if isinstance(value, list) else fields.get("messages")
    if not isinstance(messages, list):
        return Unreadable(line, "neither a conversation with messages nor an array of messages")
    if not messages:
        return Unreadable(line, "the conversation has no messages")
    named = next((fields[key] for key in SESSION_KEYS if fields.get(key) not in (None, "")), None)
    if named is None:
        # Of the whole record, so that the same words from two customers stay two sessions.
        session_id = f"import:{hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]}"
    elif (session_id := identifier(named)) == "":
        return Unreadable(line, "its session id is neither text nor a number")
    if "\0" in session_id or not _is_encodable(session_id):
        return Unreadable(line, "its session id has a character that no database can store")
    return Conversation(line, session_id, messages, fields)


def identifier(value: object) -> str:
    """An id as text, however it was written; empty for what is none."""
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and "role" in value


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
    return "nested too deeply" if isinstance(problem, RecursionError) else str(problem)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"not JSON: {name} is no number")


_decoder = json.JSONDecoder(parse_constant=_refuse_constant)


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
