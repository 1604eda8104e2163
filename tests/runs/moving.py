"""A kind of run for tests: moves rows from one table into another, which shows each that is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from django.db import connection

from memadmin.runs.engine import Lease
from memadmin.runs.kinds import RunKind, register
from memadmin.runs.models import Run

TABLES = "CREATE TABLE runs_todo (id int PRIMARY KEY); CREATE TABLE runs_done (id int, pid int)"
MOVE = """
WITH moved AS (
    DELETE FROM runs_todo WHERE id IN (SELECT id FROM runs_todo ORDER BY id LIMIT %s) RETURNING id
)
INSERT INTO runs_done SELECT id, %s FROM moved RETURNING id
"""

come_to: Callable[[str], None] = lambda place: None  # noqa: E731  # replaced by the program, and by tests


@register
class Moving(RunKind):
    name = "test_moving"
    title = "Moving"
    unit = "rows"
    counters = {"odd": "Odd numbers"}  # noqa: RUF012
    sentences = {"odd": "An odd number."}  # noqa: RUF012

    def work(self, lease: Lease) -> None:
        come_to("begin")
        lease.in_chunks(self.move)

    def move(self, run: Run, limit: int) -> int:
        come_to("locked")
        with connection.cursor() as cursor:
            cursor.execute(MOVE, [min(limit, 10), os.getpid()])
            moved = [row[0] for row in cursor.fetchall()]
        run.count(odd=sum(number % 2 for number in moved))
        if moved:
            run.cursor = max(moved)
        come_to("written")
        return len(moved)


@contextmanager
def tables(rows: int) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        cursor.execute("INSERT INTO runs_todo SELECT generate_series(1, %s)", [rows])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE runs_todo, runs_done")


def count_done() -> tuple[int, int]:
    """How many rows were moved, and how many different ones."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), count(DISTINCT id) FROM runs_done")
        row: tuple[int, int] = cursor.fetchone()
    return row
