"""A worker that is asked to stop hands its run over after the current chunk."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from procrastinate import App

from memadmin.runs import engine, jobs
from memadmin.runs.models import Run
from tests.runs.moving import count_done


@pytest.fixture(autouse=True)
def asked_by_no_other_test() -> Iterator[None]:
    engine.stopping.clear()
    yield
    engine.stopping.clear()


def test_asked_to_stop_a_worker_leaves_its_run_after_the_chunk(
    committed_run: Run, at: Callable[[str, Callable[[], None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask_to_stop() -> None:
        signal.raise_signal(signal.SIGTERM)
        assert engine.stopping.wait(30), "the engine was not told"

    def work() -> None:
        try:
            jobs.work_on_run(committed_run.pk)
        finally:
            connection.close()

    async def work_on_the_run_alone(app: App, **options: Any) -> None:
        """As procrastinate does: a job in a thread, which is waited for when the worker ends."""
        job = asyncio.create_task(asyncio.to_thread(work))
        try:
            await asyncio.shield(job)
        finally:
            await job

    at("written", ask_to_stop)
    monkeypatch.setattr(App, "run_worker_async", work_on_the_run_alone)
    call_command("worker")
    run = Run.objects.get()
    assert (run.state, run.lease_until, run.attempts) == (Run.State.RUNNING, None, 0)
    assert count_done() == (10, 10)
    engine.stopping.clear()
    assert engine.carry_on(run).state == Run.State.COMPLETE
