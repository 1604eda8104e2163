"""Periodic jobs."""

from __future__ import annotations

import time

STALE_TICK_SECONDS = 60
"""A worker that was frozen enqueues every tick it missed; ticks older than this do nothing."""


def is_stale(tick: int) -> bool:
    return time.time() - tick > STALE_TICK_SECONDS
