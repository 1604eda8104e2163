"""Rows and sessions as JSON and as pages: text in parts, so that nothing is in memory as a whole.

Pages work from a folder, without a network: no script, no reference to anything outside of the ZIP file.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.template.loader import render_to_string

from memadmin.batching import batched
from memadmin.erasure.access_copy.records import Row
from sessions_app.items import StoredItem
from sessions_app.timeline import build_timeline

ITEMS_AT_ONCE = 200
MOST_ITEMS_OF_A_RUN = 1_000
"""A longer run is divided."""

ROWS_OF_A_PART = 100

CONTENT = "<!-- content -->"
"""Marker in a template for the parts of a page; escaped text cannot contain it."""


# --- JSON -------------------------------------------------------------------------------------------------------------


def json_text(value: Any) -> str:
    """A value as JSON text. Raises ValueError and RecursionError for what JSON cannot hold."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain)


def plain(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def json_rows(rows: Iterable[Row]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield ("," if number else "") + "\n" + json_row(row)
    yield "\n]\n"


def json_row(row: Row) -> str:
    """A row; its values are text if JSON cannot hold one of them, as a number that is infinite for Python."""
    try:
        return json_text(row)
    except (ValueError, RecursionError):
        return json_text({name: plain(value) for name, value in row.items()})


# --- pages ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """A named value of a page: one line, a longer text, or further rows."""

    label: str
    kind: Literal["line", "text", "rows"]
    value: Any

    @property
    def is_empty(self) -> bool:
        return self.value in ("", [], None)


def shown(row: Row) -> list[Shown]:
    return [one for name, value in row.items() if not (one := shown_value(name, value)).is_empty]


def shown_value(name: str, value: Any) -> Shown:
    label = name.replace("_", " ")
    match value:
        case None:
            return Shown(label, "line", "")
        case bool():
            return Shown(label, "line", "yes" if value else "no")
        case datetime():
            return Shown(label, "line", f"{value:%-d %B %Y, %H:%M:%S} UTC")
        case list() if value and all(isinstance(each, dict) for each in value):
            return Shown(label, "rows", [shown(each) for each in value])
        case list() if all(isinstance(each, str) for each in value):
            return Shown(label, "line", ", ".join(value))
        case dict() | list():
            data = json.dumps(value, ensure_ascii=False, indent=1, default=plain)
            return Shown(label, "text", data if value else "")
        case _:
            text = str(value)
            return Shown(label, "text" if len(text) > 80 or "\n" in text else "line", text)


def page(title: str, parts: Iterable[str], up: str = "", intro: str = "") -> Iterator[str]:
    """A page with these parts of HTML. `up` is the way to index.html, if this is another page."""
    whole = render_to_string("erasure/copy/page.html", {"title": title, "up": up, "intro": intro})
    head, foot = whole.split(CONTENT)
    yield head
    yield from parts
    yield foot


def row_parts(rows: Iterable[Row]) -> Iterator[str]:
    parts = in_parts("_rows", map(shown, rows))
    yield next(parts, None) or render_to_string("erasure/copy/_none.html")
    yield from parts


def in_parts(template: str, rows: Iterable[Any]) -> Iterator[str]:
    """HTML of the rows, some in each part."""
    for batch in batched(rows, ROWS_OF_A_PART):
        yield render_to_string(f"erasure/copy/{template}.html", {"rows": batch})


# --- a session --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class SessionCounts:
    items: int = 0
    closed: int = 0
    """Items that are encrypted and were not decrypted."""


def json_item(item: StoredItem, number: int) -> str:
    """One item: its JSON value, or its text if that is no JSON, or would not be the same afterwards."""
    row: Row = {"number": number, "written_at": item.written_at}
    if is_closed(item):
        return json_text(row | {"not_included": "encrypted; not opened for this copy"})
    try:
        return json_text(row | {"item": json.loads(item.raw, object_pairs_hook=members_once)})
    except (ValueError, RecursionError):
        return json_text(row | {"text": item.raw})


def members_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for an object that has a member twice."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member occurs twice")
    return members


def is_closed(item: StoredItem) -> bool:
    return item.seal is not None and not item.seal.is_open


def timeline_parts(items: list[StoredItem], *, is_first: bool, is_last: bool) -> str:
    timeline = build_timeline(items, starts_session=is_first, ends_session=is_last)
    return render_to_string("erasure/copy/_timeline.html", {"timeline": timeline})


class SessionPages:
    """Divides the items of a session into parts of its page, if possible between two runs."""

    def __init__(self) -> None:
        self._waiting: list[StoredItem] = []
        self._is_first = True

    def add(self, items: list[StoredItem]) -> str:
        """HTML of everything that is complete."""
        self._waiting += items
        runs = build_timeline(self._waiting, starts_session=self._is_first, ends_session=False).runs
        if len(runs) > 1:
            last = runs[-1].anchor
            cut = next(place for place, item in enumerate(self._waiting) if item.id == last)
        else:
            cut = len(self._waiting) if len(self._waiting) >= MOST_ITEMS_OF_A_RUN else 0
        return self._take(cut, is_last=False) if cut else ""

    def finish(self) -> str:
        return self._take(len(self._waiting), is_last=True) if self._waiting else ""

    def _take(self, count: int, *, is_last: bool) -> str:
        html = timeline_parts(self._waiting[:count], is_first=self._is_first, is_last=is_last)
        self._waiting, self._is_first = self._waiting[count:], False
        return html
