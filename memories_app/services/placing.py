"""Finding the items that agents quoted: they know what was said, and not under which id their store keeps it."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from django.utils.timezone import now

from memadmin.client.items import text_of
from memadmin.client.secret_text import mask_text
from memories_app.models import Evidence
from sessions_app.models import SessionRecord
from sessions_app.stores import backend_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.timeline.decode import NotJson, parse_json

RECENT = timedelta(hours=1)
"""What could not be found for so long is not looked for any more: it was taken back, or is sealed."""

NEWEST = 60
"""Of so many items of a session one is quoted that an agent has just read."""

BATCH = 100


def place_evidence(limit: int = BATCH) -> int:
    """Notes from which item each new quote is that came without one; returns how many were found.

    A query, and two and a page of items for each session that was quoted.
    """
    waiting = list(
        Evidence.objects.filter(
            item_id="", record_id__isnull=False, gone_at=None, memory__proposed_at__gt=now() - RECENT
        )
        .exclude(quote="")
        .order_by("-memory__proposed_at", "pk")[:limit]
    )
    found = 0
    for record_id in dict.fromkeys(each.record_id for each in waiting if each.record_id):
        said = _said_lately(record_id)
        for evidence in waiting:
            if evidence.record_id == record_id and (item_id := said.get(evidence.quote)):
                # A redaction may have taken the quote out meanwhile, together with its item.
                found += Evidence.objects.filter(pk=evidence.pk, gone_at=None).update(item_id=item_id)
    return found


def _said_lately(record_id: UUID) -> dict[str, str]:
    """The ids of a session's newest items by their texts, as they are and with secrets masked as agents mask them."""
    record = SessionRecord.objects.on_record().select_related("store").filter(pk=record_id).first()
    if record is None or record.is_encrypted:
        return {}
    try:
        page = backend_for(record.store).last_page(record.session_id, NEWEST)
    except StoreUnavailable:
        return {}
    said = {}
    for item in page.items:
        try:
            content = parse_json(item.raw)
        except NotJson:
            continue
        if isinstance(content, dict) and (text := text_of(content)):
            said[text] = said[mask_text(text)[0]] = item.id
    return said
