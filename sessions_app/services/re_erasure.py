"""Erasing again the erased sessions that agents wrote to, where no fence prevents it: until nothing returns."""

from __future__ import annotations

import logging
from collections.abc import Collection

from django.db import transaction
from django.db.models import CharField, Func, Q, Value

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, StoreUnavailable

logger = logging.getLogger(__name__)


def sweep(store: SessionStore, returned_ids: Collection[str]) -> int:
    """Erases again the sessions that discovery found returned; returns how many were erased.

    The rest is counted on the store's page, and looked for at the next discovery, which then does not go by the
    store's fingerprint. A session that an agent writes to again is erased again.
    """
    backend = backend_for(store)
    if not returned_ids or Capability.ERASE_SESSIONS not in backend.capabilities:
        return 0
    swept = 0
    for session_id in returned_ids:
        try:
            swept += erase_again(store, session_id)
        except DeletionRefused:
            logger.warning("store %s keeps a session that returned: it is under a legal hold", store.pk)
        except StoreUnavailable:
            logger.warning("store %s kept a session that returned; it is erased at the next discovery", store.pk)
    discovery = {
        **store.discovery,
        "swept": store.discovery.get("swept", 0) + swept,
        "returned": max(store.discovery.get("returned", 0) - swept, 0),
        "fingerprint": "" if swept < len(returned_ids) else store.discovery.get("fingerprint", ""),
    }
    SessionStore.objects.filter(pk=store.pk).update(discovery=discovery)
    store.discovery = discovery
    return swept


def erase_again(store: SessionStore, session_id: str) -> bool:
    """True if there was anything to erase. Raises StoreUnavailable and DeletionRefused, with no record changed."""
    record = erased_record(store, session_id)
    if record is None:
        return False
    with transaction.atomic(), audit.recording(audit_events.SESSION_ERASED_AGAIN) as event:
        check_deletion(records=[record.pk])
        event.target, event.subject = record, record.subject_id
        event.counters = {"items": backend_for(store).erase_session(session_id)}
    return True


def erased_record(store: SessionStore, session_id: str) -> SessionRecord | None:
    """Record of an erased session by its id, also where only the digest of the id is left. One query."""
    by_digest = Func(Value(store.pk), Value(session_id), function="memadmin_session_digest", output_field=CharField())
    return SessionRecord.objects.filter(
        Q(session_id=session_id) | Q(session_id=by_digest), store=store, erased_at__isnull=False
    ).first()
