"""The memories for programs without an event loop, and for functions that are called by one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memadmin.client.connection import Console
from memadmin.client.memories import MemoryClient

P = ParamSpec("P")
T = TypeVar("T")


class _LoopThread:
    """A client with an event loop of its own, which runs in a thread until it is closed or the program ends."""

    def __init__(self, client: MemoryClient) -> None:
        self.client, self.pid = client, os.getpid()
        self._asked: set[Future[Any]] = set()
        self._is_closed, self._changing = False, threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memadmin-client-loop", daemon=True)
        self._thread.start()

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

    def close(self) -> None:
        with self._changing:
            self._is_closed = True
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
            await asyncio.wait(ending, timeout=self.client.console.seconds)
        await self.client.aclose()


def _blocking(
    method: Callable[Concatenate[MemoryClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemoryClient, P], T]:
    """The blocking variant of a method, for SyncMemoryClient."""

    @wraps(method)
    def call(client: SyncMemoryClient, /, *values: P.args, **options: P.kwargs) -> T:
        asked = None
        while asked is None:
            running = client._running()
            asked = running.start(partial(method, running.client, *values, **options))
        try:
            return asked.result()
        except CancelledError:
            raise RuntimeError("The client was closed during this call.") from None

    return call


class SyncMemoryClient:
    """MemoryClient with blocking methods, which have the same parameters.

    One object serves all threads of a program. In a running event loop its methods block the loop: use MemoryClient
    there. A forked process gets connections of its own.
    """

    def __init__(self, console: Console | str, **options: Any) -> None:
        self._make = partial(MemoryClient, console, **options)
        self._made: _LoopThread | None = None
        self._making = threading.Lock()
        self._running()

    warm = _blocking(MemoryClient.warm)
    recall = _blocking(MemoryClient.recall)
    get = _blocking(MemoryClient.get)
    list = _blocking(MemoryClient.list)
    propose = _blocking(MemoryClient.propose)
    signal = _blocking(MemoryClient.signal)
    forget = _blocking(MemoryClient.forget)

    def close(self) -> None:
        """Closes the connections. A later call opens them again; calls that other threads are waiting for raise
        RuntimeError, and may have been carried out.
        """
        with self._making:
            made, self._made = self._made, None
        if made and made.pid == os.getpid():
            made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _running(self) -> _LoopThread:
        with self._making:
            if self._made is None or self._made.pid != os.getpid():
                self._made = _LoopThread(self._make())
            return self._made
