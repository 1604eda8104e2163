"""Finding the items that agents quoted, and the tools behind them.

They know what was said, and not under which id their store keeps it; and where it came from is not theirs to say.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils.timezone import now

from memadmin.client.items import text_of
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
"""What is not found at once was taken back, or is sealed, or its store is away: it is looked for now and then, and not
any more after an hour."""

PAGE, MOST_PAGES = 100, 10
"""How far back a quote is looked for: agents quote what they have just read, and may have talked on meanwhile."""

BATCH = 100


def place_evidence(*, within: timedelta = LATE, limit: int = BATCH) -> int:
    """Notes from which item each quote is that came `within` this time, and which tools may be behind it; returns how
    many were found. What an agent named as the item stays.

    A query, and for each session that was quoted two and as many pages of items as it takes, ten at most.
    """
    waiting = list(
        Evidence.objects.filter(
            Q(item_id="") | Q(tools__isnull=True),
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
            # A redaction may have taken the quote out meanwhile, together with its item.
            found += Evidence.objects.filter(pk=evidence.pk, gone_at=None).update(
                item_id=evidence.item_id or place.item_id, tools=place.tools
            )
    return found


@dataclass(frozen=True, slots=True)
class QuoteLocation:
    item_id: str
    tools: list[str]


def _places_of(record_id: UUID, quotes: Set[str]) -> dict[str, QuoteLocation]:
    """The newest items of a session that say these, word for word."""
    record = SessionRecord.objects.on_record().select_related("store").filter(pk=record_id).first()
    if record is None or record.is_encrypted:
        return {}
    backend, places = backend_for(record.store), dict[str, QuoteLocation]()
    try:
        page = backend.last_page(record.session_id, PAGE)
        for _ in range(MOST_PAGES):
            in_page = {text: item for item in page.items for text in _texts_of(item) if text in quotes}
            before = None
            if in_page:
                # What a page begins with belongs to a run that called its tools before.
                before = backend.page_before(record.session_id, page.items[0].position, PAGE)
                behind = _tools_at([*before.items, *page.items])
                # Of what was said twice, the last time.
                places = {
                    text: QuoteLocation(item.id, behind.get(item.id, [])) for text, item in in_page.items()
                } | places
            if not page.items or quotes <= places.keys():
                break
            page = backend.page_before(record.session_id, page.items[0].position, PAGE) if before is None else before
    except StoreUnavailable:
        pass  # what was found before it went away is found
    return places


def _tools_at(items: Sequence[StoredItem]) -> dict[str, list[str]]:
    behind, found = ToolsBehind(), dict[str, list[str]]()
    for event in build_timeline(items, starts_session=False, ends_session=False).events:
        tools = behind.of(event)
        found |= dict.fromkeys(event.item_ids, tools)
    return found


def _texts_of(item: StoredItem) -> tuple[str, ...]:
    """What an item says, as it is and as agents quote it: without secrets."""
    try:
        content = parse_json(item.raw)
    except NotJson:
        return ()
    if not isinstance(content, dict):
        return ()
    output = content.get("output")
    text = output if isinstance(output, str) else text_of(content)
    return (text, mask_text(text)[0]) if text else ()
