"""From an uploaded file to lines: columns key, kind, note, of which the last two may be missing."""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field

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
    text = decoded(data)
    if "\0" in text:
        raise BadFile("The file contains a NUL: it is not a text file. Save it as “CSV UTF-8” and upload it again.")
    separator = separator_of(text)
    found: list[ParsedLine] = []
    for number, raw, cells in records(text, separator):
        if not found and cells[0].strip().lower() == COLUMNS[0]:
            check_header(cells)
            continue
        found.append(parse_line(number, cells, raw, separator))
        if len(found) > MOST_LINES:
            raise BadFile(f"The file has more than {MOST_LINES:,} lines. Split it into several.")
    if not found:
        raise BadFile("The file contains no lines.")
    return found


def decoded(data: bytes) -> str:
    """Raises BadFile."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise BadFile("The file is in UTF-16. Save it as “CSV UTF-8” and upload it again.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise BadFile(f"Line {line:,} is not UTF-8. Save the file as “CSV UTF-8” and upload it again.") from problem


def separator_of(text: str) -> str:
    """The separator that more lines contain; a comma where none does."""
    lines = text.splitlines()
    return max(SEPARATORS, key=lambda separator: sum(separator in line for line in lines))


def records(text: str, separator: str) -> Iterator[tuple[int, str, list[str]]]:
    """Number of its first line, text and cells of each record that is not empty. Raises BadFile."""
    taken: list[str] = []

    def lines() -> Iterator[str]:
        # Not splitlines(): a key may contain a character that only Unicode takes for a line break.
        for line in re.split("(?<=\n)", text.replace("\r\n", "\n").replace("\r", "\n")):
            taken.append(line)
            yield line

    reader = csv.reader(lines(), delimiter=separator, strict=True)
    number = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as problem:
            raise BadFile(f"A quotation mark in line {number:,} has no other one.") from problem
        if cells is None:
            return
        raw = "".join(taken)
        if raw.strip():
            yield number, raw, cells
        number += len(taken)
        taken.clear()


def check_header(cells: list[str]) -> None:
    """Raises BadFile."""
    names = [cell.strip().lower() for cell in cells]
    if tuple(names) != COLUMNS[: len(names)]:
        raise BadFile("The columns are key, kind and note, in this order; the last two may be missing.")


def parse_line(number: int, cells: list[str], raw: str = "", separator: str = ",") -> ParsedLine:
    key, kind, note, *more = [*(cell.strip() for cell in cells), "", "", ""]
    (other,) = (each for each in SEPARATORS if each != separator)
    problem: str = ""
    if any(more) or len(cells) > len(COLUMNS) or (other in key and '"' not in raw):
        problem = Problem.SEPARATORS
    elif not key:
        problem = Problem.MISSING
    elif len(key) > LONGEST_KEY or len(note) > LONGEST_NOTE or "\0" in key:
        problem = Problem.TOO_LONG
    elif kind and kind.lower() not in SubjectKind.values:
        problem = Problem.WRONG_KIND
    text = LineText(key[:LONGEST_KEY], kind.lower()[:20] or SubjectKind.USER.value, note[:LONGEST_NOTE])
    return ParsedLine(number, text, problem)


def displayed_name(name: str) -> str:
    """A file name to show: its last part, without control characters, of at most 80 characters."""
    last = re.split(r"[/\\]", name)[-1]
    shown = "".join(char for char in last if unicodedata.category(char)[0] not in "CZ" or char == " ")
    return shown.strip()[:80] or "file.csv"
