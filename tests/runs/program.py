"""A worker for one run, in a process that a test stops at any place.

Reports each place that it comes to and waits for an answer before it continues. The variants are ways to break the
engine, or to shorten its lease.
"""

from __future__ import annotations

from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

from memadmin.runs import engine
from memadmin.runs.models import Run
from tests.forks import use_database
from tests.runs import moving


def main(test: Connection, database: str, data_dir: Path, run_id: int, variants: tuple[str, ...]) -> None:
    use_database(database, data_dir)

    def wait_at(place: str) -> None:
        test.send(place)
        test.recv()

    def checkpoint_and_wait(lease: engine.Lease) -> None:
        checkpoint(lease)
        wait_at("between")

    def locked_without_a_look(lease: engine.Lease) -> Run:
        return Run.objects.get(pk=lease.run.pk)

    moving.come_to = wait_at
    checkpoint = engine.Lease.checkpoint
    setattr(engine.Lease, "checkpoint", checkpoint_and_wait)  # noqa: B010  # a place without a lock
    if "short_lease" in variants:
        engine.LEASE = timedelta(seconds=2)
    if "without_token" in variants:
        setattr(engine.Lease, "_locked", locked_without_a_look)  # noqa: B010  # a broken variant
    if "without_timeout" in variants:
        setattr(engine.Lease, "_limit_idle_time", lambda lease: None)  # noqa: B010  # a broken variant
    run = engine.carry_on(Run.objects.get(pk=run_id))
    test.send(f"end {run.state}")
