"""A sweep in a process that kills itself: at one of its transactions, or after a deletion in another system."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memadmin.retention.targets import sessions
from memadmin.runs import engine
from memadmin.runs.models import Run
from sessions_app.stores.sqlite.backend import SqliteBackend
from tests.forks import use_database


def main(database: str, data_dir: Path, run_id: int, point: int, rows: int) -> None:
    """Exits with 0 if it does not come to so many points."""
    use_database(database, data_dir)
    points = itertools.count(1)

    def pass_point() -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    chunk = engine.Lease.chunk

    @contextmanager
    def watched_chunk(lease: engine.Lease) -> Iterator[Run]:
        pass_point()
        with chunk(lease) as run:
            yield run
            pass_point()
        pass_point()

    setattr(engine.Lease, "chunk", watched_chunk)  # noqa: B010  # a place without a lock
    make_chunks_small(rows)
    engine.carry_on(Run.objects.get(pk=run_id))


def make_chunks_small(rows: int) -> None:
    begin = engine.Lease.__init__

    def begin_small(lease: engine.Lease, run: Run, **named: Any) -> None:
        begin(lease, run, **named)
        lease._rows = rows

    setattr(engine.Lease, "__init__", begin_small)  # noqa: B010
    sessions.FEWEST_ITEMS = rows
    setattr(engine.Lease, "_adapt", lambda lease, took: None)  # noqa: B010


def main_elsewhere(database: str, data_dir: Path, run_id: int, number: int, rows: int) -> None:
    """Is killed after its change of this number in a file, before anything of it is committed here."""
    use_database(database, data_dir)
    changes = itertools.count(1)

    def die_after(name: str) -> None:
        change = getattr(SqliteBackend, name)

        def change_and_die(backend: SqliteBackend, *arguments: Any, **named: Any) -> Any:
            changed = change(backend, *arguments, **named)
            if next(changes) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return changed

        setattr(SqliteBackend, name, change_and_die)

    for name in ("delete_some", "delete_items", "replace_item"):
        die_after(name)
    make_chunks_small(rows)
    engine.carry_on(Run.objects.get(pk=run_id))
