"""Looking through stores that can have no triggers for their sessions: by a job, and at once by a person."""

from __future__ import annotations

import logging

from django.contrib.auth.models import User

from memadmin import audit
from sessions_app import audited, registry
from sessions_app.models import SessionStore
from sessions_app.registry import Discovery
from sessions_app.services.sweeping import sweep
from sessions_app.stores.base import StoreUnavailable

logger = logging.getLogger(__name__)


def is_discovered(store: SessionStore) -> bool:
    """Whether its sessions have to be looked for; the triggers of others register them."""
    return store.attached_at is not None and not registry.has_fence(store)


def discover_sessions() -> int:
    """Looks through every attached store without a fence; returns how many answered. One that does not waits.

    Erased sessions that an agent wrote to again are erased again.
    """
    answered = 0
    for store in SessionStore.objects.all():
        try:
            if is_discovered(store):
                if found := registry.discover_changes(store):
                    sweep(store, found)
                answered += 1
        except StoreUnavailable:
            logger.warning("store %s is away, its new sessions are found when it is back", store.pk)
    return answered


def discover_now(store: SessionStore, *, by: User) -> Discovery:
    """The same for one store. Raises StoreUnavailable."""
    audit.record_alone(audited.DISCOVERY_ASKED, by=by, target=store)
    found = registry.discover(store)
    sweep(store, found)
    return found
