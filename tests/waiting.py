"""Waiting for a condition, with one bound for all tests: patience for a busy machine, since no test asserts a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 300


def wait_until(ask: Callable[[], T], what: str = "") -> T:
    """The first true answer. Fails after PATIENCE_SECONDS, naming what was waited for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"In vain: {what}"
        time.sleep(0.02)
    return answer
