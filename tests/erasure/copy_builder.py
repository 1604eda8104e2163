"""A worker that builds one copy in a process of its own, and is killed there, or has little space or memory."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings

from memadmin.erasure.access_copy import building, files, writing
from memadmin.runs import engine
from memadmin.runs.models import Run
from tests.forks import use_database


def main(database: str, server: Path, folder: Path, run_id: int, place: str, limit: int) -> None:
    """`place` is where it dies; `limit` is the size of the largest file that it may write, 0 for no limit."""
    use_database(database, server)
    settings.ACCESS_COPY_FOLDER = folder
    settings.SESSION_KEYS = ()
    if place:
        die_at(place)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    engine.carry_on(Run.objects.get(pk=run_id))


def memory_of_a_build(database: str, server: Path, folder: Path, run_id: int, most: int, answer: Any) -> None:
    """Sends the peak of Python's memory above that of the beginning, in bytes. A run is divided after `most` items."""
    import tracemalloc

    use_database(database, server)
    settings.ACCESS_COPY_FOLDER = folder
    writing.MOST_ITEMS_OF_A_RUN, writing.ITEMS_AT_ONCE = most, most // 5
    run = Run.objects.get(pk=run_id)
    tracemalloc.start()
    run = engine.carry_on(run)
    answer.send((run.state, tracemalloc.get_traced_memory()[1]))


def die_at(place: str) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    match place:
        case "in the second session":
            calls = iter([lambda: None, die])
            before(building, "write_parts", lambda: next(calls)())
        case "in the file":
            before(building, "numbered", die)
        case "in place, not committed":
            after_call(files, "put_in_place", die)
        case "committed":
            before(files, "delete_parts", die)


def before(module: Any, name: str, act: Callable[[], None]) -> None:
    original = getattr(module, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act()
        return original(*args, **kwargs)

    setattr(module, name, wrapped)


def after_call(module: Any, name: str, act: Callable[[], None]) -> None:
    original = getattr(module, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        original(*args, **kwargs)
        act()

    setattr(module, name, wrapped)
