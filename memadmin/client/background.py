"""Requests to the console that no run waits for."""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from memadmin.client.connection import Console, ConsoleUnavailable, RefusedByDatabase
from memadmin.client.loop_thread import LoopThread

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Requests that may wait in a process; further ones are dropped."""

MOST_AT_ONCE = 4
"""Connections of the thread, fewer than a loop may have: a request that waited for one would count as a failure of the
database."""

Request = Callable[[], Coroutine[Any, Any, object]]


class BackgroundSender:
    """Sends requests from a thread that starts with the first of them.

    What waits when the program ends, or when the object is no longer used, is sent within the time limit for an answer.
    """

    def __init__(self) -> None:
        self._thread: LoopThread | None = None
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)
        self._finish: Callable[[], object] = lambda: None
        self._changing = threading.Lock()
        self._is_full = False

    def send(self, console: Console, request: Request) -> None:
        """Returns at once. `request` asks `console`; a failure is logged."""
        asked = None
        while asked is None:
            thread, turns = self._running(console)
            if len(thread.unfinished) >= MOST_WAITING:
                self._drop()
                return
            asked = thread.start(partial(_in_turn, turns, request))
        self._is_full = False

    def flush(self) -> None:
        """Waits until everything is sent, no longer than for an answer."""
        if thread := self._thread:
            thread.wait()

    def close(self) -> None:
        """Flushes, and ends the thread with its connections. A later request starts another one."""
        with self._changing:
            finish, self._thread, self._finish = self._finish, None, lambda: None
        finish()

    def _running(self, console: Console) -> tuple[LoopThread, asyncio.Semaphore]:
        with self._changing:
            if self._thread is None or not self._thread.is_here:
                self._thread = LoopThread(console)
                self._turns = asyncio.Semaphore(MOST_AT_ONCE)
                self._finish = weakref.finalize(self, _finish, self._thread)
            return self._thread, self._turns

    def _drop(self) -> None:
        if not self._is_full:
            logger.warning("More than %d signals wait for the console; further ones are dropped.", MOST_WAITING)
        self._is_full = True


async def _in_turn(turns: asyncio.Semaphore, request: Request) -> None:
    async with turns:
        try:
            await request()
        except ConsoleUnavailable:
            pass  # the console has logged it
        except RefusedByDatabase as refusal:
            logger.info("The console refused a signal (%s).", refusal.sqlstate)
        except Exception as problem:
            logger.warning("A signal was not stored (%s).", type(problem).__name__)


def _finish(thread: LoopThread) -> None:
    if left := thread.wait():
        logger.warning("Signals that were not sent before the program or the client ended: %d.", left)
    thread.close()
