"""The speed limit of a run, on a clock that moves only when the run waits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from threading import Event

import pytest

from memadmin.runs import engine, services
from memadmin.runs.engine import RENEW_AFTER_SECONDS, Interrupted, Lease, carry_on, take
from memadmin.runs.models import Run
from tests.people import person
from tests.runs import moving
from tests.runs.conftest import ROWS

pytestmark = pytest.mark.django_db


class Clock(Event):
    """Takes the place of the clock and of the event that ends this process."""

    seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        assert 0 < timeout <= RENEW_AFTER_SECONDS
        self.seconds += timeout
        return self.is_set()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(engine, "stopping", clock)
    monkeypatch.setattr(engine, "time", clock)
    return clock


def limited(run: Run, rows_per_second: int | None) -> None:
    Run.objects.filter(pk=run.pk).update(rows_per_second=rows_per_second)


def test_a_run_without_a_limit_does_not_wait(run: Run, clock: Clock) -> None:
    carry_on(run)
    assert (moving.count_done(), clock.seconds) == ((ROWS, ROWS), 0)


@pytest.mark.parametrize(("limit", "seconds"), [(1, 45), (5, 9), (1_000, 0.045)])
def test_a_limited_run_takes_its_time(run: Run, clock: Clock, limit: int, seconds: float) -> None:
    limited(run, limit)
    carry_on(run)
    assert moving.count_done() == (ROWS, ROWS)
    assert clock.seconds == pytest.approx(seconds)


def test_a_chunk_of_a_slow_run_is_what_a_second_may_do(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    limited(run, 3)
    done: list[int] = []
    monkeypatch.setattr(moving, "come_to", lambda place: done.append(moving.count_done()[0]))
    carry_on(run)
    assert max(later - earlier for earlier, later in pairwise(done)) == 3


def after_three_waits(clock: Clock, event: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    waits = count(1)

    def wait(timeout: float | None = None) -> bool:
        if next(waits) == 3:
            event()
        return Clock.wait(clock, timeout)

    monkeypatch.setattr(clock, "wait", wait)


def lease_of_a_large_chunk(run: Run) -> Lease:
    """As of a kind whose chunk is one session, of which a thousand seconds' worth was done."""
    limited(run, 1)
    lease = take(run.pk)
    assert lease is not None
    with lease.chunk() as row:
        row.done = 1_000
    return lease


def test_a_limit_that_is_removed_ends_the_wait(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = lease_of_a_large_chunk(run)
    after_three_waits(clock, lambda: limited(run, None), monkeypatch)
    lease.checkpoint()
    assert clock.seconds == 3 * RENEW_AFTER_SECONDS


def test_a_run_is_paused_while_it_waits(run: Run, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = lease_of_a_large_chunk(run)
    after_three_waits(clock, lambda: services.pause_run(run, by=person("compliance")), monkeypatch)
    with pytest.raises(Interrupted):
        lease.checkpoint()
    assert clock.seconds == 3 * RENEW_AFTER_SECONDS
