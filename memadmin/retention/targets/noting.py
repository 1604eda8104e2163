"""Notes of sessions that are about to go from another system, with the number of their items, and of single items.

What is deleted there does not come back, also if this process is killed before it has counted it. So a note is
committed in a chunk of its own first: what the note says and is not there any more was taken, and is counted then.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from django.db.models import F, QuerySet
from django.db.models.functions import Greatest

from memadmin.retention.models import UnfinishedExpiry
from memadmin.retention.policies.rules import Action, Rule
from sessions_app.items import StoredItem
from sessions_app.models import SessionRecord
from sessions_app.redaction.shown import mark_of
from sessions_app.stores.base import Backend, Capability, SessionBusy, SessionUnreadable


def note(backend: Backend, records: Sequence[SessionRecord], rule: Rule) -> bool:
    """Whether any of these sessions was noted now: the caller's transaction must be over before they go.

    One request for each session, and none for stores in our own transactions. Raises StoreUnavailable.
    """
    if Capability.FENCE in backend.capabilities:
        return False
    known = UnfinishedExpiry.objects.filter(record_id__in=[record.pk for record in records])
    noted = set(known.values_list("record_id", flat=True))
    new = [
        UnfinishedExpiry(record_id=record.pk, version_id=rule.version, items=items_of(backend, record))
        for record in records
        if record.pk not in noted
    ]
    UnfinishedExpiry.objects.bulk_create(new, ignore_conflicts=True)
    return bool(new)


def items_of(backend: Backend, record: SessionRecord) -> int | None:
    try:
        return backend.count_each([record.session_id])[record.session_id]
    except (SessionBusy, SessionUnreadable):
        return None


def noted_items(record: SessionRecord) -> int:
    """Number of items of a session that the note says and nothing has counted yet; 0 without a note."""
    items = UnfinishedExpiry.objects.filter(record_id=record.pk).values_list("items", flat=True).first()
    return items or 0


def count_off(record: SessionRecord, count: int) -> None:
    """Takes items that were deleted, and are counted, off the note."""
    UnfinishedExpiry.objects.filter(record_id=record.pk, items__isnull=False).update(
        items=Greatest(F("items") - count, 0)
    )


def forget(record: SessionRecord) -> None:
    """For a session that stays, with nothing deleted."""
    UnfinishedExpiry.objects.filter(record_id=record.pk).delete()


def noted(records: QuerySet[SessionRecord], rule: Rule) -> QuerySet[SessionRecord]:
    """Those of these records that are noted under a version, and of which no deletion is known."""
    notes = UnfinishedExpiry.objects.filter(version=rule.version).values("record_id")
    return records.filter(pk__in=notes, erased_at=None)


def gone_uncounted(backend: Backend, records: QuerySet[SessionRecord]) -> list[SessionRecord]:
    """Noted sessions that are not in their store any more; forgets the other notes. For those that are not due now."""
    found = {record.session_id: record for record in records.select_related("store")}
    there = backend.look_up(sorted(found)) if found else {}
    for session_id in there:
        forget(found[session_id])
    return [record for session_id, record in sorted(found.items()) if session_id not in there]


# --- single items -----------------------------------------------------------------------------------------------------

ItemMark = tuple[str, str]
"""Id of an item and mark of its stored text, which a redaction changes."""


def mark(item: StoredItem) -> ItemMark:
    """The mark of an item as it is stored, whole and not decrypted."""
    return item.id, mark_of(item.raw)


def note_items(record: SessionRecord, rule: Rule, marks: Sequence[ItemMark]) -> None:
    """Notes items of a session that goes on; the caller's transaction must be over before they go."""
    columns = {"version_id": rule.version, "item_marks": marks}
    UnfinishedExpiry.objects.update_or_create(record_id=record.pk, defaults=columns)


def item_notes(records: QuerySet[SessionRecord], rule: Rule) -> dict[SessionRecord, list[ItemMark]]:
    """Items that are noted under a version, by their session, for those of these records."""
    notes = UnfinishedExpiry.objects.filter(version=rule.version, item_marks__isnull=False)
    found = {note.record_id: note.item_marks or [] for note in notes}
    return {
        record: [(item_id, text_mark) for item_id, text_mark in found[record.pk]]
        for record in records.filter(pk__in=found).select_related("store").order_by("pk")
    }


def key_of(backend: Backend, action: Action, mark: ItemMark) -> Hashable:
    """Key by which an item is recognised until the action has changed it."""
    if Capability.ITEM_IDS not in backend.capabilities:
        # Others move to the places of those that go.
        return mark[1]
    # An item with another text is still there: it may have been encrypted with another key.
    return mark[0] if action == Action.DELETE else mark


def keys_there(backend: Backend, action: Action, record: SessionRecord) -> set[Hashable]:
    """Keys of all items of a session. Reads the session; raises SessionUnreadable and StoreUnavailable."""
    return {key_of(backend, action, mark(item)) for item in backend.every_item(record.session_id)}
