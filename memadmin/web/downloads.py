"""Files to take away: their answers, and tables as CSV that no spreadsheet runs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import chain

from django.http import StreamingHttpResponse
from django.utils.cache import add_never_cache_headers

# What a spreadsheet takes for the beginning of a formula, in its full-width forms too, and what it skips before.
SKIPPED = "[ \u00a0\u200b\u2060\ufeff]*"
FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20"
# After these another cell begins for a program that was told of another delimiter, or that minds no quotes.
DIVIDERS = "[;|\t\r\n]"
BEFORE_FORMULA = re.compile(f"\\A(?={SKIPPED}[{FORMULA}\t\r\n])|(?<={DIVIDERS})(?={SKIPPED}[{FORMULA}])")


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """A table as CSV (RFC 4180, every cell quoted), one line for the header and one for each row; None is empty.

    Text that a spreadsheet would take for a formula gets an apostrophe in front, also behind a semicolon, a bar or a
    line break inside a cell: a program that was told of another delimiter begins a cell there. So a negative number
    gets one too.
    """
    buffer = StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    for row in chain([header], rows):
        writer.writerow(map(harmless, row))
        yield taken(buffer)


def harmless(value: object) -> str:
    """A value as the text of a cell that stays text."""
    return BEFORE_FORMULA.sub("'", "" if value is None else str(value))


def taken(buffer: StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def as_download(parts: Iterable[str], name: str, content_type: str) -> StreamingHttpResponse:
    """Text, part by part, as a file of this name, which a browser neither shows, guesses at nor keeps."""
    # Stored text may hold a lone surrogate, which UTF-8 has no bytes for.
    response = StreamingHttpResponse(
        (part.encode(errors="surrogatepass") for part in parts), content_type=f"{content_type}; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    add_never_cache_headers(response)
    return response
