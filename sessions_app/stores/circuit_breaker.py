"""How long stores that hang may let a page wait: once in a few seconds, however many pages ask, how often, and how many
stores.

A store that is asked by pages, and takes long to say nothing, rests: until its seconds are over, the pages of this
process say what it said instead of asking it. Several are asked side by side. Verbs, commands and jobs do not come by
here, so they always ask.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from django.db import connections

from sessions_app.stores.base import Capability, SessionBusy, StoreTooSlow, StoreUnavailable
from sessions_app.stores.kinds import can

if TYPE_CHECKING:
    from sessions_app.models import SessionStore

T = TypeVar("T")

REST_SECONDS = 15.0
"""How long pages leave a store alone that hung; one that answers again is seen after this time at the latest."""

LONG_SECONDS = 1.0
"""Who says sooner that it cannot be reached holds nobody up, and is asked each time."""

PAGE_SECONDS = 10.0
"""How long a page waits for all of its stores together: one that hangs gives up after half of it."""

ASKED_AT_ONCE = 16

_resting: dict[int, tuple[float, str]] = {}
"""Until when, and what the store said, by its id."""


class StoreResting(StoreUnavailable):
    """The store hung a moment ago, and was not asked again."""


@contextmanager
def asking(store: SessionStore, *, anyway: bool = False) -> Iterator[None]:
    """Around one question that a page asks. Raises StoreResting instead of asking; `anyway` asks all the same.

    A store with a fence is in the console's own database, which is not away alone: there, one statement that takes too
    long says nothing of the next.
    """
    if can(store, Capability.FENCE):
        yield
        return
    until, said = _resting.get(store.pk, (0.0, ""))
    began = monotonic()
    if not anyway and began < until:
        seconds = math.ceil(until - began)
        raise StoreResting(f"{said} Pages ask it again in {seconds} second{'' if seconds == 1 else 's'}.")
    try:
        yield
    except SessionBusy:
        raise
    except StoreUnavailable as away:
        if monotonic() - began >= LONG_SECONDS:
            _rests(store, away)
        raise
    _resting.pop(store.pk, None)


def ask_all(
    questions: Mapping[SessionStore, Callable[[], T]], *, anyway: bool = False
) -> dict[SessionStore, T | StoreUnavailable]:
    """What each store says, asked side by side: for PAGE_SECONDS at most, so that several that hang let a page wait as
    long as one does. What does not answer is in the place of its answer.

    A store with a fence is asked here, on the connection of the caller. All others are asked in threads, where a
    question must not look into the database of the console.
    """

    def ask(store: SessionStore) -> T | StoreUnavailable:
        try:
            with asking(store, anyway=anyway):
                return questions[store]()
        except StoreUnavailable as away:
            return away

    def ask_in_thread(store: SessionStore) -> T | StoreUnavailable:
        try:
            return ask(store)
        finally:
            connections.close_all()  # of a kind of somebody's own, perhaps

    give_up_at = monotonic() + PAGE_SECONDS
    elsewhere = [store for store in questions if not can(store, Capability.FENCE)]
    several = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="stores")
    under_way = {store: several.submit(ask_in_thread, store) for store in elsewhere}
    try:
        answers = {store: ask(store) for store in questions if store not in under_way}
        wait(under_way.values(), timeout=max(give_up_at - monotonic(), 0))
    finally:
        several.shutdown(wait=False, cancel_futures=True)
    answers |= {store: _answer_of(store, answer) for store, answer in under_way.items()}
    return {store: answers[store] for store in questions}


def _answer_of(store: SessionStore, answer: Future[T | StoreUnavailable]) -> T | StoreUnavailable:
    if answer.cancelled():
        return StoreTooSlow(f"The store {store} was not asked: others took too long.")
    if not answer.done():
        away = StoreTooSlow(f"The store {store} did not answer within {PAGE_SECONDS:g} seconds.")
        _rests(store, away)
        return away
    return answer.result()


def _rests(store: SessionStore, away: StoreUnavailable) -> None:
    _resting[store.pk] = (monotonic() + REST_SECONDS, str(away))


def wake_all() -> None:
    """Forgets which stores hung."""
    _resting.clear()
