"""The memories for programs without an event loop, and for functions that are called by one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from memadmin.client.connection import Console
from memadmin.client.loop_thread import LoopThread
from memadmin.client.memories import MemoryClient

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[MemoryClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemoryClient, P], T]:
    """The blocking variant of a method, for SyncMemoryClient."""

    @wraps(method)
    def call(client: SyncMemoryClient, /, *values: P.args, **options: P.kwargs) -> T:
        asked = None
        while asked is None:
            within, thread = client._running()
            asked = thread.start(partial(method, within, *values, **options))
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
        self._made: tuple[MemoryClient, LoopThread] | None = None
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
        if made:
            made[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _running(self) -> tuple[MemoryClient, LoopThread]:
        with self._making:
            if self._made is None or not self._made[1].is_open:
                client = self._make()
                self._made = client, LoopThread(client.console)
            return self._made
