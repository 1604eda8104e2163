"""Inspection of sessions that were written to: findings, encryption, the agents' names, items per day.

No content is kept, only findings and counts.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.db import transaction
from django.utils.timezone import now

from memadmin.batching import batched
from memadmin.process_metrics import counting_store_call
from sessions_app.models import SessionFinding, SessionRecord, SessionStore
from sessions_app.services.counting_days import ItemDays
from sessions_app.stores.base import SessionUnreadable, StoreUnavailable
from sessions_app.stores.sealed import sealed_backend_for
from sessions_app.timeline import Inspector

logger = logging.getLogger(__name__)

QUIET = timedelta(seconds=10)
"""Time without writes before an inspection: in the middle of a run everything looks unfinished."""

ITEMS_A_BATCH = 500


def inspect_quiet_sessions(*, limit: int = 100, quiet: timedelta = QUIET) -> int:
    """Inspects sessions written since their last inspection, the longest waiting first; returns how many.

    `limit` holds for each store. The sessions of a store that is not responding wait for the next time; those of other
    stores are inspected.
    """
    waiting = SessionRecord.objects.awaiting_inspection().filter(last_activity_at__lte=now() - quiet)
    inspected = 0
    for store in SessionStore.objects.all():
        try:
            for record in waiting.filter(store=store).select_related("store")[:limit]:
                try:
                    with counting_store_call(store.kind):
                        inspect_session(record)
                except SessionUnreadable:
                    logger.warning("session %s cannot be read; it is inspected after its next change", record.pk)
                    note_inspected(record)
                inspected += 1
        except StoreUnavailable:
            logger.warning("store %s is not responding; its sessions are inspected later", store.pk)
    return inspected


def inspect_session(record: SessionRecord) -> None:
    """Reads a whole session once, in batches, and records its findings. Memory does not grow with its length.

    Items written while it reads count as not inspected.
    """
    inspector, days = Inspector(), ItemDays(record)
    # Envelopes are examined, and never decrypted here: no person asked to read them.
    for items in batched(sealed_backend_for(record.store, opens=False).every_item(record.session_id), ITEMS_A_BATCH):
        inspector.feed(items)
        days.feed(items)
    result = inspector.finish()
    with transaction.atomic():
        # No key lock: agents that write to this session meanwhile must not wait for us.
        rows = SessionRecord.objects.select_for_update(no_key=True).filter(
            store_id=record.store_id, session_id=record.session_id, erased_at__isnull=True
        )
        current = rows.first()
        if current is None:
            return
        SessionFinding.objects.filter(session_id=record.session_id, record_id=record.pk).delete()
        SessionFinding.objects.bulk_create(
            SessionFinding(
                record_id=record.pk,
                session_id=record.session_id,
                kind=finding.code,
                item_id=finding.item.id,
            )
            for finding in result.findings
        )
        days.save(current)
        SessionRecord.objects.filter(store_id=record.store_id, session_id=record.session_id).update(
            finding_count=len(result.findings),
            is_encrypted=result.is_encrypted,
            has_plain_items=result.has_plain_items,
            agent=current.agent or result.last_agent,
            inspected_count=record.activity_count,
            counted_items=days.item_count,
        )


def note_inspected(record: SessionRecord) -> None:
    """Lets the next inspection wait for the next write."""
    SessionRecord.objects.filter(store_id=record.store_id, session_id=record.session_id).update(
        inspected_count=record.activity_count
    )


def inspect_again(record: SessionRecord) -> None:
    """Marks a session for inspection although nothing was written: an item with a finding is gone."""
    SessionRecord.objects.filter(store_id=record.store_id, session_id=record.session_id).inspect_again()
