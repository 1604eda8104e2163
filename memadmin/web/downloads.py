"""Downloads: streaming responses, and CSV tables without formula injection."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from io import StringIO
from itertools import chain

from django.http import StreamingHttpResponse
from django.utils.cache import add_never_cache_headers
from django.utils.timezone import now

BYTE_ORDER_MARK = "\ufeff"

MOST_ROWS = 1_000_000
"""Maximum of rows in a table for spreadsheets, which read 1,048,576. More are refused, as a part would mislead."""

# Characters with which a formula begins in spreadsheets, also full-width, and characters skipped before it.
SKIPPED = "[ \u00a0\u200b\u2060\ufeff]*"
FORMULA = "=+\\-@\uff1d\uff0b\uff0d\uff20"
# Characters after which a cell begins in a program with another delimiter, or without support for quotes.
DIVIDERS = "[;|\t\r\n]"
BEFORE_FORMULA = re.compile(f"\\A(?={SKIPPED}[{FORMULA}\t\r\n])|(?<={DIVIDERS})(?={SKIPPED}[{FORMULA}])")


def csv_lines(header: Iterable[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """A table as CSV (RFC 4180, every cell quoted), one line for the header and one for each row; None is empty.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe, also after a semicolon, a bar or a
    line break inside a cell, where a program with another delimiter begins a cell. Negative numbers get one, too.
    """
    buffer = StringIO()
    writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
    for row in chain([header], rows):
        writer.writerow(map(harmless, row))
        yield taken(buffer)


def harmless(value: object) -> str:
    """A value as the text of a cell, never read as a formula."""
    return BEFORE_FORMULA.sub("'", "" if value is None else str(value))


def taken(buffer: StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text


def table_download(header: Iterable[str], rows: Iterable[Iterable[object]], name: str) -> StreamingHttpResponse:
    """A table as CSV for spreadsheets, as a download with this name and today's date; see `csv_lines`.

    It begins with a byte order mark: without one Excel reads the file in the code page of the computer, and "Müller"
    becomes "MÃ¼ller". Files for programs are without.
    """
    lines = chain([BYTE_ORDER_MARK], csv_lines(header, rows))
    return as_download(lines, f"{name}-{now():%Y-%m-%d}.csv", "text/csv")


def in_utc(instant: datetime | None) -> str:
    """A time as spreadsheets read it, without a zone; empty for None."""
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S}" if instant else ""


def as_download(parts: Iterable[str], name: str, content_type: str) -> StreamingHttpResponse:
    """Text in parts as a download with this name; browsers neither display, sniff nor cache it."""
    # Stored text may contain a lone surrogate, which UTF-8 cannot encode.
    response = StreamingHttpResponse(
        (part.encode(errors="surrogatepass") for part in parts), content_type=f"{content_type}; charset=utf-8"
    )
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    add_never_cache_headers(response)
    return response
