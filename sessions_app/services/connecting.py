"""Connecting a store whose sessions are looked for: everything that needs no trigger on the agents' tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.db import transaction

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.stores.kinds import Kind, kinds


def kinds_to_connect() -> Sequence[Kind]:
    """All but the kind whose tables get triggers: those take the rights of the tables' owner, and a command."""
    return [kind for kind in kinds().values() if kind.name != registry.MAIN_KIND]


def connect_store(name: str, kind: Kind, *, options: Mapping[str, str], **tables: str) -> SessionStore:
    """A new store, attached, with its sessions on record. `tables` are those of `declare_store`, and the zone.

    Nothing is kept of one that cannot be attached. Raises AttachRefused, or StoreUnavailable.
    """
    if SessionStore.objects.filter(name=name).exists():
        raise registry.AttachRefused(f"There is a store {name} already.")
    with transaction.atomic():
        store = registry.declare_store(name, kind=kind.name, options=options, **tables)
        registry.plan_attachment(store)
    registry.attach(store)
    return store
