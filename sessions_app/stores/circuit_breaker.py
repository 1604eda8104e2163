"""Circuit breaker and timeouts for slow stores.

A store that took long to fail is not asked again by the pages of this process until its rest time is over: they show
its last error instead. Several stores are asked side by side. Services, commands and jobs do not use this module.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import copy_context
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from django.db import connections

from memadmin import tracing
from memadmin.counting import counted
from memadmin.process_metrics import counting_store_call
from sessions_app.stores.base import Capability, SessionBusy, StoreTooSlow, StoreUnavailable
from sessions_app.stores.kinds import can

if TYPE_CHECKING:
    from sessions_app.models import SessionStore

T = TypeVar("T")

REST_SECONDS = 15.0
"""Rest time of a store that hung; a store that answers again is noticed after this time at the latest."""

LONG_SECONDS = 1.0
"""A store that fails sooner delays no page, and is asked each time."""

PAGE_SECONDS = 10.0
"""Time that a page waits for all of its stores together; a single store times out after half of it."""

ASKED_AT_ONCE = 16

_resting: dict[int, tuple[float, str]] = {}
"""End of the rest time and last error of a store, by its id."""


class StoreResting(StoreUnavailable):
    """The store hung recently and was not asked again."""


@contextmanager
def asking(store: SessionStore, *, anyway: bool = False) -> Iterator[None]:
    """Context for one call to a store from a page. Raises StoreResting during the rest time, unless `anyway`.

    A store with a fence never rests: it is in the console's own database, where one slow statement is no sign that the
    next one is slow.
    """
    named: dict[str, str | int] = {"memadmin.store.kind": store.kind, "memadmin.store.id": store.pk}
    if can(store, Capability.FENCE):
        with tracing.span("ask store", named), counting_store_call(store.kind):
            yield
        return
    until, said = _resting.get(store.pk, (0.0, ""))
    began = monotonic()
    if not anyway and began < until:
        seconds = math.ceil(until - began)
        raise StoreResting(f"{said} The console tries again in {counted(seconds, 'seconds')}.")
    try:
        with tracing.span("ask store", named), counting_store_call(store.kind):
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
    """Answers of several stores, asked side by side for PAGE_SECONDS at most: several slow stores delay a page no more
    than one. A store that fails has its exception in place of the answer.

    A store with a fence is asked on the connection of the caller. All others are asked in threads, where a call must
    not use the database of the console.
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
            connections.close_all()  # a third-party kind may have opened some

    give_up_at = monotonic() + PAGE_SECONDS
    elsewhere = [store for store in questions if not can(store, Capability.FENCE)]
    several = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="stores")
    # Each thread with a copy of the context, which names the request in log lines and traces.
    under_way = {store: several.submit(copy_context().run, ask_in_thread, store) for store in elsewhere}
    try:
        answers = {store: ask(store) for store in questions if store not in under_way}
        wait(under_way.values(), timeout=max(give_up_at - monotonic(), 0))
    finally:
        several.shutdown(wait=False, cancel_futures=True)
    answers |= {store: _answer_of(store, answer) for store, answer in under_way.items()}
    return {store: answers[store] for store in questions}


def _answer_of(store: SessionStore, answer: Future[T | StoreUnavailable]) -> T | StoreUnavailable:
    if answer.cancelled():
        return StoreTooSlow(
            f"The store {store} was not read, because other stores used up the time limit. Reload the page."
        )
    if not answer.done():
        away = StoreTooSlow(f"The store {store} did not respond within {PAGE_SECONDS:g} seconds.")
        _rests(store, away)
        return away
    return answer.result()


def _rests(store: SessionStore, away: StoreUnavailable) -> None:
    _resting[store.pk] = (monotonic() + REST_SECONDS, str(away))


def wake_all() -> None:
    """Ends all rest times."""
    _resting.clear()
