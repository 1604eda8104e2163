"""Health checks of stores: by a job, and at a user's request. Pages of several stores show the last result."""

from __future__ import annotations

from time import monotonic

from django.db.models import Q
from django.utils.timezone import now

from sessions_app import registry
from sessions_app.models import SessionStore
from sessions_app.registry.last_check import columns_of
from sessions_app.stores.base import StoreHealth

STORES_AT_ONCE = 50

CHECK_SECONDS = 20.0
"""Time for the checks of one job. Of more stores than that is enough for, the next job checks the rest first."""


def check_stores(*, seconds: float = CHECK_SECONDS) -> int:
    """Checks all stores, the one with the oldest result first, until the time is over; returns how many."""
    began, deadline, count = now(), monotonic() + seconds, 0
    places = registry.Places()
    due = SessionStore.objects.longest_unchecked().filter(Q(checked_at=None) | Q(checked_at__lt=began))
    while batch := list(due[:STORES_AT_ONCE]):
        for store, health in zip(batch, registry.health_of_all(batch, places=places), strict=True):
            save_health(store, health)
        count += len(batch)
        if monotonic() >= deadline:
            break
    return count


def check_store(store: SessionStore) -> StoreHealth:
    """Checks one store, and saves the result, although it hung a moment ago. Never raises for a store that is away."""
    health = registry.health(store)
    save_health(store, health)
    return health


def save_health(store: SessionStore, health: StoreHealth) -> None:
    # Not through the row that was read before the check, which may be old by now.
    columns = {"checked_at": now(), **columns_of(health)}
    SessionStore.objects.filter(pk=store.pk).update(**columns)
    for name, value in columns.items():
        setattr(store, name, value)
