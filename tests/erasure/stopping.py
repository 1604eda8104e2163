"""An erasure in a process that a test stops before one of its transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path

from memadmin.runs import engine
from memadmin.runs.models import Run
from tests.forks import use_database


def main(test: Connection, database: str, data_dir: Path, run_id: int, number: int, variants: tuple[str, ...]) -> None:
    """Says `here` before the transaction of this number, or `within` it, and waits for an answer; in the end `end`."""
    use_database(database, data_dir)
    chunk, numbers = engine.Lease.chunk, count(1)

    def stop() -> None:
        test.send("here")
        test.recv()

    @contextmanager
    def stopping_chunk(lease: engine.Lease) -> Iterator[Run]:
        is_here = next(numbers) == number
        if is_here and "within" not in variants:
            stop()
        with chunk(lease) as run:
            yield run
            if is_here and "within" in variants:
                stop()

    setattr(engine.Lease, "chunk", stopping_chunk)  # noqa: B010  # a place without a lock
    if "without_token" in variants:
        setattr(engine.Lease, "_locked", lambda lease: Run.objects.get(pk=lease.run.pk))  # noqa: B010  # broken
    engine.carry_on(Run.objects.get(pk=run_id))
    test.send("end")
