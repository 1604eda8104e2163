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
from sessions_app.stores.base import Deleted
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
    """Is killed after its deletion of this number in a file, before anything of it is committed here."""
    use_database(database, data_dir)
    deletions, delete_some = itertools.count(1), SqliteBackend.delete_some

    def delete_and_die(backend: SqliteBackend, session_id: str, *, at_most: int) -> Deleted:
        deleted = delete_some(backend, session_id, at_most=at_most)
        if next(deletions) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return deleted

    setattr(SqliteBackend, "delete_some", delete_and_die)  # noqa: B010
    make_chunks_small(rows)
    engine.carry_on(Run.objects.get(pk=run_id))
