"""Two people at the same moment, each with a transaction of their own."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from django.db import connection

from tests.waiting import PATIENCE_SECONDS

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


def wait_until_blocked(someone: Future[Any], *, by: psycopg.Connection | None = None) -> None:
    """Returns when somebody waits for a lock (of a connection); fails when they got through instead."""
    if not comes_to_wait(someone, by=by):
        raise AssertionError(f"nothing blocked it: {someone.exception() or someone.result()!r}")


def comes_to_wait(
    someone: Future[Any], *, on: psycopg.Connection | None = None, by: psycopg.Connection | None = None
) -> bool:
    """Whether somebody came to wait for a lock before they were done: anybody, or who is on a connection; of anybody,
    or of who is on another."""
    # In this database only: another process of the test run has one of its own on the same server.
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    if on is not None:
        waiting += f" AND pid = {on.info.backend_pid}"
    if by is not None:
        waiting += f" AND {by.info.backend_pid} = ANY(pg_blocking_pids(pid))"
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if someone.done():
            return False
        with connection.cursor() as cursor:
            # In a transaction the view would show the same again and again.
            cursor.execute("SELECT pg_stat_clear_snapshot()")
            cursor.execute(waiting)
            if cursor.fetchone() != (0,):
                return True
        time.sleep(0.01)
    raise AssertionError("they neither ended nor waited")
