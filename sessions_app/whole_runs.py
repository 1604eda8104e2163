"""Pages of a session that begin and end between runs, so that no run is cut in half.

The functions get a page as its store returned it, drop a run that is cut at an end of it, and read on where little
would be left. The cost does not depend on the length of the session: mostly no further request to the store, at most a
few. Only a run longer than MOST_ITEMS is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sessions_app.items import ItemPage, StoredItem
from sessions_app.stores.base import Readable
from sessions_app.timeline.runs import run_starts

MOST_ITEMS = 300
"""Number of items from which a page is not continued to the end of a run."""

STEP_ITEMS = 50
"""Minimum number of items that are read at once to find the beginning of a run."""


def ends_with_run(
    backend: Readable, session_id: str, page: ItemPage, limit: int, *, most: int = MOST_ITEMS
) -> ItemPage:
    """The page, ending with the last item of a run. It begins as given, and has about `limit` items.

    It is best given one item more than `limit`, which shows whether a run ends there.
    """
    items, has_later, most = list(page.items), page.has_later, max(limit, most)
    while True:
        if not has_later and len(items) <= limit:
            return replace(page, items=items, has_later=False)
        starts = [start for start in run_starts(items) if start > 0]
        within = [start for start in starts if start <= limit]
        beyond = [start for start in starts if start > limit]
        if within and within[-1] >= limit // 2:
            return _until(page, items, within[-1])
        if beyond:
            return _until(page, items, beyond[0])
        if not has_later:
            return replace(page, items=items, has_later=False)
        if len(items) >= most:
            if starts:
                return _until(page, items, starts[-1])
            return replace(_until(page, items, most), is_cut_at_end=True)
        more = backend.page_after(session_id, items[-1].position, limit)
        items += more.items
        has_later = more.has_later and bool(more.items)


def begins_with_run(
    backend: Readable, session_id: str, page: ItemPage, limit: int, *, most: int = MOST_ITEMS
) -> ItemPage:
    """The page, beginning with the first item of a run. It ends as given, and has about `limit` items.

    It is best given one item more than `limit`, which shows whether a run begins there.
    """
    items, has_earlier, most = list(page.items), page.has_earlier, max(limit, most)
    while True:
        if not has_earlier and len(items) <= limit:
            return replace(page, items=items, has_earlier=False)
        starts = [start for start in run_starts(items) if start > 0]
        lowest = len(items) - limit
        within = [start for start in starts if start >= lowest]
        beyond = [start for start in starts if start < lowest]
        if within and len(items) - within[0] >= limit // 2:
            return _from(page, items, within[0])
        if beyond:
            return _from(page, items, beyond[-1])
        if not has_earlier:
            return replace(page, items=items, has_earlier=False)
        if len(items) >= most:
            if starts:
                return _from(page, items, starts[0])
            return replace(_from(page, items, len(items) - most), is_cut_at_start=True)
        more = backend.page_before(session_id, items[0].position, max(limit, STEP_ITEMS))
        items = [*more.items, *items]
        has_earlier = more.has_earlier and bool(more.items)


def around_item(backend: Readable, session_id: str, page: ItemPage, item_id: str, limit: int) -> ItemPage:
    """The page with whole runs on both sides of one of its items, about `limit` items together."""
    place = next(index for index, item in enumerate(page.items) if item.id == item_id)
    half = limit // 2
    most = MOST_ITEMS // 2
    before = begins_with_run(backend, session_id, replace(page, items=page.items[: place + 1]), half, most=most)
    after = ends_with_run(backend, session_id, replace(page, items=page.items[place:]), half, most=most)
    return replace(
        after,
        items=[*before.items, *after.items[1:]],
        has_earlier=before.has_earlier,
        is_cut_at_start=before.is_cut_at_start,
    )


def with_beginning(backend: Readable, session_id: str, page: ItemPage) -> ItemPage:
    """The page, with the items before it that belong to its first run."""
    first, *others = page.items
    begun = begins_with_run(backend, session_id, replace(page, items=[first]), 1)
    return replace(begun, items=[*begun.items, *others], has_later=page.has_later)


def _until(page: ItemPage, items: Sequence[StoredItem], end: int) -> ItemPage:
    return replace(page, items=items[:end], has_later=True)


def _from(page: ItemPage, items: Sequence[StoredItem], start: int) -> ItemPage:
    return replace(page, items=items[start:], has_earlier=True)
