"""Window of a session that a page shows, as its address selects it, and signed places in a session."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from django.http import QueryDict
from django.utils.dateparse import parse_date
from django.utils.timezone import localtime

from memadmin.web.paging import BadCursor, read_texts, sign_texts
from memadmin.web.zones import begin_of
from sessions_app.items import ItemPage, Position, StoredItem
from sessions_app.masked_reader import Reader
from sessions_app.models import SessionRecord
from sessions_app.stores.base import UnknownItem

PAGE_ITEMS = 100

MARKDOWN = "markdown"


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a session that a page shows, with the problem of its address if there is one."""

    page: ItemPage
    target: str = ""
    """Id of the item that the address selects."""
    cursor: Cursor | None = None
    day: date | None = None
    """Day that the address selects."""
    opens_at_end: bool = False
    """Whether the page is opened to read its end: the newest items."""
    problem: str = ""
    status: int = 200


def choose_window(reader: Reader, record: SessionRecord, query: QueryDict) -> Window:
    """Window by the query: at an item, a day, a signed place, or the start; without any of these the newest items.

    An address that cannot be followed gives the newest items, with the reason as a sentence and an error status.
    """
    session_id = record.session_id
    if item_id := query.get("item"):
        try:
            return Window(reader.page_around(session_id, item_id, PAGE_ITEMS), target=item_id)
        except UnknownItem:
            gone = "This item is not in the session: the agent may have removed it or compacted its history."
            return Window(reader.last_page(session_id, PAGE_ITEMS), problem=gone, status=404)
    if text := query.get("date"):
        try:
            day = parse_date(text)
        except ValueError:
            day = None
        if day is None:
            wrong = "This is not a date. Use the format 2026-11-30."
            return Window(reader.last_page(session_id, PAGE_ITEMS), problem=wrong, status=400)
        page = reader.page_from(session_id, begin_of(day), PAGE_ITEMS)
        return Window(page, day=day, problem=about_day(page, day))
    if place := query.get("at"):
        cursor = Cursor.read(record, place)
        if cursor is None:
            wrong = "The link is incomplete or was changed. The page shows the newest items of the session."
            return Window(reader.last_page(session_id, PAGE_ITEMS), problem=wrong, status=400)
        turns = {"before": reader.page_before, "at": reader.page_at, "after": reader.page_after}
        return Window(turns[cursor.direction](session_id, cursor.position, PAGE_ITEMS), cursor=cursor)
    if "start" in query:
        return Window(reader.first_page(session_id, PAGE_ITEMS))
    return Window(reader.last_page(session_id, PAGE_ITEMS), opens_at_end=True)


def about_day(page: ItemPage, day: date) -> str:
    """Sentence about a page that was to begin with a day and does not; empty if the day has items."""
    days = [localtime(item.written_at).date() for item in page.items if item.written_at]
    if day in days or not page.items:
        return ""
    if not days:
        return "The store keeps no times of items. The page shows the newest ones."
    later = next((each for each in days if each > day), None)
    if later is None:
        return f"No items on {words_for(day)} or later. The page shows the newest ones."
    return f"No items on {words_for(day)}. The page shows the next ones, of {words_for(later)}."


def words_for(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A signed place in one session: it cannot be forged or used for another session."""

    direction: str
    position: Position

    def sign(self, record: SessionRecord) -> str:
        return sign_texts([self.direction, str(self.position)], f"timeline:{record.pk}")

    @classmethod
    def read(cls, record: SessionRecord, text: str) -> Cursor | None:
        """The signed place, or None for any text that was not signed for this session."""
        try:
            direction, position = read_texts(text, f"timeline:{record.pk}")
            return cls(direction, Position.parse(position))
        except (BadCursor, ValueError):
            return None


def form_asked_for(query: QueryDict) -> str:
    """Form of texts by the query: MARKDOWN for rendered Markdown; empty for plain text."""
    return MARKDOWN if query.get("form") == MARKDOWN else ""


def is_whole(page: ItemPage) -> bool:
    return not page.has_earlier and not page.has_later


def fingerprint(items: Iterable[StoredItem]) -> str:
    """Changes when an item of the window is added, removed, moved, changed in length, or no longer decrypted."""
    digest = hashlib.blake2b(digest_size=9)
    for stored in items:
        is_open = stored.seal is not None and stored.seal.is_open
        digest.update(f"{stored.id}:{stored.position}:{stored.byte_count}:{is_open}\n".encode())
    return digest.hexdigest()
