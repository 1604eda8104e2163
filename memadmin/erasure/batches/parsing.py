"""Parser of uploaded CSV files: columns key, kind and note, of which the last two may be missing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO

from memadmin.erasure.batches.sealed import LineText
from memadmin.erasure.models import BatchLine
from sessions_app.models import SubjectKind

Problem = BatchLine.Problem

MOST_LINES = 5_000
MOST_BYTES = 1_000_000
LONGEST_KEY = 512
LONGEST_NOTE = 500
COLUMNS = ("key", "kind", "note")
SEPARATORS = (",", ";")


class BadFile(Exception):
    """The file cannot be read at all; the message is a sentence for the operator. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class ParsedLine:
    """One line as it is in the file. `number` is that of an editor: the first line is 1, also if it is a header."""

    number: int
    text: LineText = field(repr=False)
    problem: str = ""


def parse(data: bytes) -> list[ParsedLine]:
    """The lines of a CSV file, without its header and empty lines. Raises BadFile."""
    if len(data) > MOST_BYTES:
        raise BadFile("The file is larger than 1 MB. Split it into several.")
    found: list[ParsedLine] = []
    for number, cells in records(decoded(data)):
        if not found and cells[0].strip().lower() == COLUMNS[0]:
            check_header(cells)
            continue
        found.append(parse_line(number, cells))
        if len(found) > MOST_LINES:
            raise BadFile(f"The file has more than {MOST_LINES:,} lines. Split it into several.")
    if not found:
        raise BadFile("The file contains no lines.")
    return found


def decoded(data: bytes) -> str:
    """Raises BadFile."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise BadFile(f"Line {line:,} is not UTF-8. Save the file as “CSV UTF-8” and upload it again.") from problem
    if "\0" in text:
        raise BadFile("The file contains a NUL: it is not a text file. Save it as “CSV UTF-8” and upload it again.")
    return text


def records(text: str) -> Iterator[tuple[int, list[str]]]:
    """Number of its first line, and cells, of each record that is not empty. Raises BadFile."""
    lines = text.splitlines()
    # The one that more lines contain; a comma where none does.
    separator = max(SEPARATORS, key=lambda each: sum(each in line for line in lines))
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    number = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield number, cells
            number = reader.line_num + 1
    except csv.Error as problem:
        raise BadFile(f"A quotation mark in line {number:,} has no other one.") from problem


def check_header(cells: list[str]) -> None:
    """Raises BadFile."""
    names = [cell.strip().lower() for cell in cells]
    if tuple(names) != COLUMNS[: len(names)]:
        raise BadFile("The columns are key, kind and note, in this order; the last two may be missing.")


def parse_line(number: int, cells: list[str]) -> ParsedLine:
    key, kind, note, *_ = [*(cell.strip() for cell in cells), "", ""]
    problem: str = ""
    if len(cells) > len(COLUMNS):
        problem = Problem.SEPARATORS
    elif not key:
        problem = Problem.MISSING
    elif len(key) > LONGEST_KEY or len(note) > LONGEST_NOTE:
        problem = Problem.TOO_LONG
    elif kind and kind.lower() not in SubjectKind.values:
        problem = Problem.WRONG_KIND
    text = LineText(key[:LONGEST_KEY], kind.lower()[:20] or SubjectKind.USER.value, note[:LONGEST_NOTE])
    return ParsedLine(number, text, problem)
