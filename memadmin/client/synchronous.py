"""The memories for programs without an event loop, and for functions that are called by one."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
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
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memadmin-client-loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        # It runs in the context of the caller, so that it belongs to the caller's run.
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self.run(self.client.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _blocking(
    method: Callable[Concatenate[MemoryClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemoryClient, P], T]:
    """The same method of SyncMemoryClient."""

    @wraps(method)
    def call(client: SyncMemoryClient, /, *values: P.args, **options: P.kwargs) -> T:
        running = client._running()
        return running.run(method(running.client, *values, **options))

    return call


class SyncMemoryClient:
    """MemoryClient, whose methods return when their result is there; parameters as for MemoryClient.

    One object serves all threads of a program. Called within a running event loop it works, and keeps that loop
    waiting: there MemoryClient is better. A process that was forked gets connections of its own.
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
        """Closes the connections. A later call opens them again."""
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
