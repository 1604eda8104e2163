"""Linking of quotes to items of sessions, with the role that said them and the tools that may have influenced them.

Agents quote text without the ids of items in their store, and must not state its origin themselves.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils.timezone import now

from memadmin.client.items import is_from_user, text_of
from memadmin.client.secret_text import mask_text
from memories_app.models import Evidence
from memories_app.tool_provenance import ToolsBehind
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.timeline import build_timeline
from sessions_app.timeline.decode import NotJson, parse_json

RECENT, LATE = timedelta(minutes=1), timedelta(hours=1)
"""Quotes not found at once were removed or encrypted, or their store is unavailable: the search is repeated for an
hour."""

PAGE, MOST_PAGES = 100, 10
"""Maximum of pages searched backwards: agents quote recent messages, and may have continued meanwhile."""

BATCH = 100


def place_evidence(*, within: timedelta = LATE, limit: int = BATCH) -> int:
    """Links quotes stored `within` this time to their items, with role and tools; returns the number of links.
    An item named by an agent stays.

    One query, and for each quoted session two and the pages of items, at most ten.
    """
    waiting = list(
        Evidence.objects.filter(
            Q(item_id="") | Q(tools__isnull=True) | Q(said_by_user__isnull=True),
            record_id__isnull=False,
            gone_at=None,
            memory__proposed_at__gt=now() - within,
        )
        .exclude(quote="")
        .order_by("-memory__proposed_at", "pk")[:limit]
    )
    quotes: dict[UUID, set[str]] = {}
    for evidence in waiting:
        if evidence.record_id:
            quotes.setdefault(evidence.record_id, set()).add(evidence.quote)
    places = {record_id: _places_of(record_id, wanted) for record_id, wanted in quotes.items()}
    found = 0
    for evidence in waiting:
        if evidence.record_id and (place := places[evidence.record_id].get(evidence.quote)):
            # A redaction may have removed the quote meanwhile, together with its item.
            found += Evidence.objects.filter(pk=evidence.pk, gone_at=None).update(
                item_id=evidence.item_id or place.item_id, tools=place.tools, said_by_user=place.is_from_user
            )
    return found


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    item_id: str
    tools: list[str]
    is_from_user: bool


def _places_of(record_id: UUID, quotes: Set[str]) -> dict[str, QuoteLocation]:
    """The newest items of a session that contain these quotes literally."""
    record = SessionRecord.objects.on_record().select_related("store").filter(pk=record_id).first()
    if record is None or record.is_unreadable:
        return {}
    backend, places = backend_for(record.store), dict[str, QuoteLocation]()
    try:
        page = backend.last_page(record.session_id, PAGE)
        for _ in range(MOST_PAGES):
            # Of repeated text, the last occurrence.
            in_page = {
                text: (item, from_user)
                for item in page.items
                for text, from_user in texts_of(item).items()
                if text in quotes
            }
            before = None
            if in_page:
                # The first items of a page belong to a run that called its tools on the page before.
                before = backend.page_before(record.session_id, page.items[0].position, PAGE)
                behind = _tools_at([*before.items, *page.items])
                places = {
                    text: QuoteLocation(item.id, behind.get(item.id, []), from_user)
                    for text, (item, from_user) in in_page.items()
                } | places
            if not page.items or quotes <= places.keys():
                break
            page = backend.page_before(record.session_id, page.items[0].position, PAGE) if before is None else before
    except StoreUnavailable:
        pass  # results from before the failure are kept
    return places


def _tools_at(items: Sequence[StoredItem]) -> dict[str, list[str]]:
    behind, found = ToolsBehind(), dict[str, list[str]]()
    for event in build_timeline(items, starts_session=False, ends_session=False).events:
        tools = behind.of(event)
        found |= dict.fromkeys(event.item_ids, tools)
    return found


def texts_of(item: StoredItem) -> dict[str, bool]:
    """Texts of an item, unchanged and with masked secrets, as agents quote it; each with whether a user wrote it."""
    try:
        content = parse_json(item.raw)
    except NotJson:
        return {}
    if not isinstance(content, dict):
        return {}
    output = content.get("output")
    text = output if isinstance(output, str) else text_of(content)
    return dict.fromkeys((text, mask_text(text)[0]), is_from_user(content)) if text else {}
