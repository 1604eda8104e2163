"""An event loop in a thread, with connections of its own to the console's database."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from memadmin.client.connection import Console

T = TypeVar("T")


class LoopThread:
    """Runs until it is closed or the program ends. A forked process has no such thread: see `is_here`."""

    def __init__(self, console: Console) -> None:
        self._console, self._pid = console, os.getpid()
        self._asked: set[Future[Any]] = set()
        self._is_closed, self._changing = False, threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memadmin-client-loop", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """False in a process that was forked from the one with the thread."""
        return self._pid == os.getpid()

    @property
    def unfinished(self) -> frozenset[Future[Any]]:
        return frozenset(self._asked)

    def start(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T] | None:
        """The future result of `work`; None if the loop was closed before."""
        with self._changing:
            if self._is_closed:
                return None
            # It runs in the context of the caller, so that it belongs to the caller's run.
            asked = asyncio.run_coroutine_threadsafe(work(), self._loop)
            self._asked.add(asked)
        asked.add_done_callback(self._asked.discard)
        return asked

    def wait(self) -> int:
        """Waits until all work has ended, no longer than for an answer; returns how much has not."""
        if not self.is_here or threading.current_thread() is self._thread:
            return 0
        return len(wait(self.unfinished, self._console.seconds).not_done)

    def close(self) -> None:
        """Cancels what has not ended, and closes the connections."""
        if not self.is_here:
            return
        with self._changing:
            self._is_closed = True
        if threading.current_thread() is self._thread:
            # The last reference to a client may be that of its own work.
            self._loop.call_soon(self._loop.stop)
            return
        for asked in tuple(self._asked):
            asked.cancel()
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _end(self) -> None:
        """Closes the connections, after those of cancelled calls were given back; a server that is gone is not waited
        for longer than for an answer.
        """
        if ending := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(ending, timeout=self._console.seconds)
        await self._console.aclose()
