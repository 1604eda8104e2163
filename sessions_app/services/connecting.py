"""Attaching stores by their settings: a refused attachment leaves nothing behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.db import transaction

from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.attaching import attach_store, remove_triggers
from sessions_app.services.store_config import StoreStillNeeded, declare_store, delete_store, restore_declaration
from sessions_app.stores.base import StoreUnavailable
from sessions_app.stores.kinds import StoreKind, kinds


def kinds_to_connect() -> Sequence[StoreKind]:
    """All kinds but the one whose tables get triggers: it needs the rights of the tables' owner, and a command."""
    return [kind for kind in kinds().values() if kind.name != registry.MAIN_KIND]


def connect_store(name: str, kind: StoreKind, *, options: Mapping[str, str], **tables: str) -> SessionStore:
    """A new attached store with its sessions registered. `tables` are those of `declare_store`, and the zone.

    Raises AttachRefused, or StoreUnavailable; see `attach_declared`.
    """
    declared = {"kind": kind.name, "options": options, "must_be_new": True, "check": registry.refuse_unusable, **tables}
    store, _ = attach_declared(name, declared)
    return store


def attach_declared(
    name: str, declared: Mapping[str, Any], *, report: Callable[[str], None] = lambda purpose: None
) -> tuple[SessionStore, Sequence[registry.AttachStep]]:
    """A store with these parameters of `declare_store`, attached, and the steps that had to run.

    Raises AttachRefused, or StoreUnavailable: a new store is not kept then, and another is as it was before. Runs
    outside transactions.
    """
    with transaction.atomic():
        existing = SessionStore.objects.filter(name=name)
        # Without a row to lock nothing is changed yet: what is refused comes before the question for a password.
        before = existing.select_for_update().first() if existing.exists() else None
        store = declare_store(name, **declared)
        registry.refuse_place_of_another(store)
        registry.plan_attachment(store)
    try:
        return store, attach_store(store, report=report)
    except (registry.AttachRefused, StoreUnavailable):
        with suppress(registry.AttachRefused, StoreUnavailable, StoreStillNeeded):
            _put_back(store, before)
        raise


def _put_back(store: SessionStore, before: SessionStore | None) -> None:
    """Undoes what was done of an attachment. What agents' locks keep from being undone is named by the store's health.

    Raises AttachRefused, StoreUnavailable and StoreStillNeeded.
    """
    if before:
        restore_declaration(before)
    if before and before.attached_at:
        attach_store(before)
        return
    remove_triggers(store)
    if before is None:
        # Registered by triggers of this attachment.
        SessionRecord.objects.filter(store=store, subject=None, erased_at=None).delete()
        delete_store(store)
