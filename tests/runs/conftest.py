"""Runs of the kind `Moving`, in this process and in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connection

from memadmin.runs.models import Run
from memadmin.runs.services import request_run
from tests.runs import moving

ROWS = 45


@pytest.fixture
def run(db: None) -> Iterator[Run]:
    """A run that has to move ROWS rows, at most ten in a chunk."""
    with moving.tables(ROWS):
        yield request_run("test_moving", total=ROWS)


@pytest.fixture
def committed_run(transactional_db: None) -> Iterator[Run]:
    """The same, visible to other processes."""
    with moving.tables(ROWS):
        yield request_run("test_moving", total=ROWS)


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Callable[[], None]], None]:
    """`at("locked", act)` calls `act` once, when the work next comes to that place."""

    def at(place: str, act: Callable[[], None]) -> None:
        acts = [act]

        def come_to(reached: str) -> None:
            if reached == place and acts:
                acts.pop()()

        monkeypatch.setattr(moving, "come_to", come_to)

    return at


def let_the_lease_expire(run: Run) -> None:
    """As if its time were over."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE runs_run SET lease_until = now() - interval '1 second' WHERE number = %s", [run.pk])
