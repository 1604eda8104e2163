"""Connecting stores that are polled: those without triggers on the agents' tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from django.db import transaction

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.services.attaching import attach_store
from sessions_app.services.store_config import declare_store, delete_store
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import StoreKind, kinds

logger = logging.getLogger(__name__)


def kinds_to_connect() -> Sequence[StoreKind]:
    """All kinds but the one whose tables get triggers: it needs the rights of the tables' owner, and a command."""
    return [kind for kind in kinds().values() if kind.name != registry.MAIN_KIND]


def connect_store(name: str, kind: StoreKind, *, options: Mapping[str, str], **tables: str) -> SessionStore:
    """A new attached store with its sessions registered. `tables` are those of `declare_store`, and the zone.

    If it stops responding meanwhile it stays connected, and `discovered_at` empty: a job looks for its sessions
    until it responds. Nothing is kept of one that cannot be attached. Raises AttachRefused, or StoreUnavailable.
    """
    with transaction.atomic():
        store = declare_store(name, kind=kind.name, options=options, must_be_new=True, **tables)
        registry.plan_attachment(store)
    try:
        attach_store(store)
    except (registry.AttachRefused, StoreUnavailable):
        if store.attached_at is None:
            delete_store(store)
            raise
        logger.warning("store %s is connected and not responding; its sessions are found once it responds", store.pk)
    return store
