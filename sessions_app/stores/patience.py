"""How often a store that hangs may let a page wait: once in a few seconds, however many pages ask and how often each.

A store that is asked by pages, and takes long to say nothing, rests: until its seconds are over, the pages of this
process say what it said instead of asking it. Verbs, commands and jobs do not come by here, so they always ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from sessions_app.stores.base import Capability, SessionBusy, StoreUnavailable
from sessions_app.stores.kinds import can

if TYPE_CHECKING:
    from sessions_app.models import SessionStore

REST_SECONDS = 15.0
"""How long pages leave a store alone that hung; one that answers again is seen after this time at the latest."""

LONG_SECONDS = 1.0
"""Who says sooner that it cannot be reached holds nobody up, and is asked each time."""

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
            _resting[store.pk] = (monotonic() + REST_SECONDS, str(away))
        raise
    _resting.pop(store.pk, None)


def wake_all() -> None:
    """Forgets which stores hung."""
    _resting.clear()
