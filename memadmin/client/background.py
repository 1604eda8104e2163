"""Requests to the console that no run waits for."""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from functools import partial
from typing import Any
from weakref import WeakSet, finalize

from memadmin.client.connection import Console, ConsoleUnavailable, RefusedByDatabase
from memadmin.client.loop_thread import LoopThread

logger = logging.getLogger(__name__)

MOST_WAITING = 1000
"""Requests that may wait in a process; further ones are dropped."""

MOST_AT_ONCE = 4
"""Connections of the thread, fewer than a loop may have: a request that waited for one would count as a failure of the
database."""

Request = Callable[[], Coroutine[Any, Any, object]]

_threads: WeakSet[LoopThread] = WeakSet()
"""Those that run: each is kept by its thread."""


class BackgroundSender:
    """Sends requests from a thread that starts with the first of them.

    A program waits for them before it ends, no longer than for an answer. A sender that is no longer used sends what
    waits, and its thread ends.
    """

    def __init__(self) -> None:
        self._started: tuple[LoopThread, asyncio.Semaphore] | None = None
        self._changing = threading.Lock()
        self._is_full = False

    def send(self, console: Console, request: Request) -> None:
        """Returns at once. `request` asks `console`; a failure is logged."""
        asked = None
        while asked is None:
            try:
                thread, turns = self._running(console)
            except RuntimeError as problem:  # from Python 3.12 on no thread starts while a program ends
                logger.warning("A signal was not sent (%s).", type(problem).__name__)
                return
            if len(thread.unfinished) >= MOST_WAITING:
                self._drop()
                return
            asked = thread.start(partial(_in_turn, turns, request))
        self._is_full = False

    def flush(self) -> None:
        """Waits until everything is sent, no longer than for an answer."""
        if started := self._started:
            _log_unsent(started[0].wait())

    def close(self) -> None:
        """Flushes, and ends the thread with its connections. A later request starts another one."""
        with self._changing:
            started, self._started = self._started, None
        if started:
            _log_unsent(started[0].wait())
            started[0].close()

    def _running(self, console: Console) -> tuple[LoopThread, asyncio.Semaphore]:
        with self._changing:
            if self._started is None or not self._started[0].is_open:
                thread = LoopThread(console)
                _threads.add(thread)
                finalize(self, thread.end).atexit = False
                self._started = thread, asyncio.Semaphore(MOST_AT_ONCE)
            return self._started

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


@atexit.register
def _send_the_rest() -> None:
    """Waits, but closes nothing: what else ends meanwhile may hold locks that the threads need."""
    running = tuple(_threads)
    waiting = [asked for thread in running for asked in thread.unfinished]
    if waiting:
        _log_unsent(len(wait(waiting, max(thread.seconds for thread in running)).not_done))


def _log_unsent(count: int) -> None:
    if count:
        logger.warning("Signals that could not be sent in time: %d.", count)
