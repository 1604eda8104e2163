"""An event loop in a thread, with connections of its own to the console's database."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from memadmin.client.connection import Console

T = TypeVar("T")


class LoopThread:
    """Runs until it is closed or the program ends."""

    def __init__(self, console: Console) -> None:
        self._console, self._pid = console, os.getpid()
        self._asked: set[Future[Any]] = set()
        self._is_closed, self._changing = False, threading.Lock()
        self._loop = _Loop()
        self._ending: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name="memadmin-client-loop", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """False after it was closed, and in a process that was forked from the one with the thread."""
        return self._pid == os.getpid() and not self._is_closed

    @property
    def unfinished(self) -> frozenset[Future[Any]]:
        """Futures of work that has not ended; none in a forked process."""
        return frozenset(self._asked) if self._pid == os.getpid() else frozenset()

    @property
    def seconds(self) -> float:
        """Time limit for an answer."""
        return self._console.seconds

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
        return len(wait(self.unfinished, self.seconds).not_done)

    def close(self) -> None:
        """Cancels what has not ended, closes the connections, and waits for the end of the thread."""
        if threading.current_thread() is self._thread:
            self.end()
        if not self.is_open:
            return
        with self._changing:
            self._is_closed = True
        for asked in tuple(self._asked):
            asked.cancel()
        try:
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def end(self) -> None:
        """Lets the thread end when its work has ended. Waits for nothing and takes no lock: for the garbage collector,
        which may run anywhere.
        """
        if self.is_open:
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._begin_to_end)

    def _begin_to_end(self) -> None:
        self._ending = self._loop.create_task(self._end())
        self._ending.add_done_callback(lambda _: self._loop.stop())

    async def _end(self) -> None:
        """Closes the connections, after those of cancelled calls were given back; a server that is gone is not waited
        for longer than for an answer.
        """
        if ending := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(ending, timeout=self.seconds)
        await self._console.aclose()

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()


class _Loop(asyncio.SelectorEventLoop):
    """Finds hosts also when the program ends: asyncio asks for their addresses in threads, and then none can start."""

    async def getaddrinfo(self, *values: Any, **options: Any) -> Any:
        try:
            return await super().getaddrinfo(*values, **options)
        except RuntimeError:
            return socket.getaddrinfo(*values, **options)
