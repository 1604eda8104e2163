"""An erasure in a process that kills itself at one of its fault points: around each of its transactions."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from memadmin.erasure.scan.progress import KEY as SCAN_PROGRESS
from memadmin.runs import engine
from memadmin.runs.models import Run
from tests.forks import use_database

PLACES = 10
"""A scan commits after each place with rows: around those after which the number of places is a multiple of this, a
process is killed.
"""


def main(database: str, data_dir: Path, ledger: Path, run_id: int, point: int) -> None:
    """Exits with 0 if it does not come to so many points."""
    from django.conf import settings

    from memadmin.erasure.suppression.ledger import Ledger

    use_database(database, data_dir)
    settings.SUPPRESSION_LEDGER = ledger
    points = itertools.count(1)

    def pass_point() -> None:
        if next(points) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    chunk, append = engine.Lease.chunk, Ledger.append

    @contextmanager
    def watched_chunk(lease: engine.Lease) -> Iterator[Run]:
        if len(lease.run.cursor.get(SCAN_PROGRESS, {}).get("done", ())) % PLACES:
            with chunk(lease) as run:
                yield run
            return
        pass_point()
        with chunk(lease) as run:
            yield run
            pass_point()
        pass_point()

    def watched_append(own: Ledger, *given: Any, **named: Any) -> Any:
        pass_point()
        entry = append(own, *given, **named)
        pass_point()
        return entry

    setattr(engine.Lease, "chunk", watched_chunk)  # noqa: B010  # a place without a lock
    setattr(Ledger, "append", watched_append)  # noqa: B010
    engine.carry_on(Run.objects.get(pk=run_id))
