"""A sweep in a process that kills itself at one of its fault points: before, within and after each transaction."""

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
from tests.forks import use_database


def main(database: str, data_dir: Path, run_id: int, point: int, rows: int) -> None:
    """Exits with 0 if it does not come to so many points."""
    use_database(database, data_dir)
    points = itertools.count(1)

    def pass_point() -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    chunk, begin = engine.Lease.chunk, engine.Lease.__init__

    @contextmanager
    def watched_chunk(lease: engine.Lease) -> Iterator[Run]:
        pass_point()
        with chunk(lease) as run:
            yield run
            pass_point()
        pass_point()

    def begin_small(lease: engine.Lease, run: Run, **named: Any) -> None:
        begin(lease, run, **named)
        lease._rows = rows

    setattr(engine.Lease, "chunk", watched_chunk)  # noqa: B010  # a place without a lock
    setattr(engine.Lease, "__init__", begin_small)  # noqa: B010
    sessions.FEWEST_ITEMS = rows
    setattr(engine.Lease, "_adapt", lambda lease, took: None)  # noqa: B010
    engine.carry_on(Run.objects.get(pk=run_id))
