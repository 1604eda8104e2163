"""Two stores in one place: each session would be listed twice, and erased in the registry of one of them only.

Settings cannot show it: two variables may have one address, one host several names, and a link may lead to a file. So
each store is asked where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import timedelta
from functools import partial

from django.db.models import Q
from django.utils.timezone import now

from sessions_app.models import SessionStore
from sessions_app.stores import backend_for
from sessions_app.stores.base import Place, StoreProblem, StoreUnavailable
from sessions_app.stores.circuit_breaker import ask_all

SAME_PLACE = "same-place"
"""Code of the problem of two stores in one location."""

ATTACHED_WITHIN = timedelta(minutes=1)
"""Time for which a store may be about to be attached."""


def attached_stores() -> Iterable[SessionStore]:
    return SessionStore.objects.exclude(attached_at=None)


def stores_with_a_place() -> Iterable[SessionStore]:
    """Attached stores, and those about to be attached: of two at once, each of which has a row before looking for that
    of the other, one may get the place or none, but not both. A detached store has given its place up.
    """
    on_its_way = Q(attached_at=None, discovered_at=None, created_at__gt=now() - ATTACHED_WITHIN)
    return SessionStore.objects.filter(Q(attached_at__isnull=False) | on_its_way)


class Places:
    """Places of stores, each asked once: for one page, or one run of a command. An unavailable store is in no place."""

    def __init__(self, among: Callable[[], Iterable[SessionStore]] = attached_stores) -> None:
        self.among = among
        self._found: dict[int, AbstractSet[Place]] = {}
        self._by_system: dict[str, list[SessionStore]] | None = None

    def others_with(self, store: SessionStore) -> list[SessionStore]:
        """The other stores in the place of this one. Only stores in the same sort of system are asked."""
        others = [other for other in self._in_system(system_of(store)) if other.pk != store.pk]
        if not others:
            return []
        found = self._of([store, *others])
        return [other for other in others if are_one(found[store.pk], found[other.pk])]

    def _of(self, stores: Iterable[SessionStore]) -> Mapping[int, AbstractSet[Place]]:
        answers = ask_all({store: partial(places_of, store) for store in stores if store.pk not in self._found})
        for store, answer in answers.items():
            self._found[store.pk] = frozenset() if isinstance(answer, StoreUnavailable) else answer
        return self._found

    def _in_system(self, system: str) -> list[SessionStore]:
        if self._by_system is None:
            self._by_system = {}
            for store in self.among():
                self._by_system.setdefault(system_of(store), []).append(store)
        return self._by_system.get(system, []) if system else []


def places_of(store: SessionStore) -> AbstractSet[Place]:
    return backend_for(store).places()


def system_of(store: SessionStore) -> str:
    """Empty if the place is unknown."""
    try:
        return backend_for(store).system()
    except StoreUnavailable:
        return ""


def are_one(some: AbstractSet[Place], others: AbstractSet[Place]) -> bool:
    """True if the two have a key in common."""
    return any(mine[: len(other)] == other[: len(mine)] for mine in some for other in others)


def obstacles_in_place(store: SessionStore) -> list[StoreProblem]:
    """Problem of a store that is not attached yet."""
    return [
        StoreProblem(
            SAME_PLACE,
            f"The store {other} already uses this location with other settings: each session would be listed twice. To"
            f" use this name instead, run attach_store {other} --remove first.",
        )
        for other in Places(stores_with_a_place).others_with(store)
    ]


def problems_of_place(store: SessionStore, places: Places) -> list[StoreProblem]:
    """Problem of a store whose place became that of another after it was attached, or was unknown before."""
    return [
        StoreProblem(
            SAME_PLACE,
            f"The store {other} uses the same location: each session is listed twice, and erased in the registry of"
            " one of them only. Keep one of the two, and run attach_store --remove for the other.",
        )
        for other in places.others_with(store)
    ]
