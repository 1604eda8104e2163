"""Two people at the same moment, each with a transaction of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection

T = TypeVar("T")


@contextmanager
def somebody_else() -> Any:
    """Gives a function that starts another one beside us, on a connection of its own, and returns its future."""
    with ThreadPoolExecutor(1) as pool:

        def start(act: Callable[[], T]) -> Future[T]:
            def act_and_close() -> T:
                try:
                    return act()
                finally:
                    connection.close()

            return pool.submit(act_and_close)

        yield start


def wait_until_blocked(someone: Future[Any]) -> None:
    """Returns when somebody waits for a lock in this database; fails when they got through instead."""
    while not someone.done():
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone() != (0,):
                return
        time.sleep(0.01)
    raise AssertionError(f"nothing blocked it: {someone.exception() or someone.result()!r}")
