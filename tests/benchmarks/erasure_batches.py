"""Figures of batches of erasures, by `python -m tests.benchmarks.erasure --batch N`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psutil

from tests.benchmarks import report
from tests.benchmarks.report import Target

if TYPE_CHECKING:
    from django.contrib.auth.models import User

SESSIONS = """
INSERT INTO agent_sessions (session_id) SELECT key || ':1' FROM unnest(%(keys)s::text[]) AS key
"""
ITEMS = """
INSERT INTO agent_messages (session_id, message_data)
SELECT key || ':1', '{"role": "user", "content": "tea"}' FROM unnest(%(keys)s::text[]) AS key, generate_series(1, 2)
"""
ATTACH = """
UPDATE sessions_app_sessionrecord AS r SET subject_id = a.subject_id
FROM sessions_app_subjectalias AS a WHERE r.session_id = a.key || ':1' AND a.key = ANY (%(keys)s)
"""


def measure(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Figures of a batch of each size, one after the other in one database; at least one size.

    Each subject has a session of two items and a memory. One process does the work and sequences the audit log. A day
    passes at once between the two scans.
    """
    from tests.agents import attach_main_store, make_agent_tables
    from tests.benchmarks.erasure import prepare
    from tests.people import person

    prepare()
    make_agent_tables()
    attach_main_store()
    officer, second = person("compliance"), person("compliance", "reviewer")
    figures = []
    for number, size in enumerate(sizes):
        keys = [f"batch-{number}-{each}" for each in range(size)]
        figures.append(measure_batch(keys, officer, second))
    return figures


def measure_batch(keys: Sequence[str], officer: User, second: User) -> dict[str, Any]:
    from memadmin.accounts.approvals.services import shown_now
    from memadmin.erasure.batches import services
    from memadmin.erasure.models import RequestBatch
    from memadmin.runs.models import Run
    from tests.erasure.batches import csv_of, let_a_day_pass, uploaded, work_off_batch

    add_people(keys)
    with measured() as counting:
        batch = uploaded(csv_of(*keys), by=officer)
    batch = services.request_approval(batch, by=officer)
    batch = services.approve(batch, by=second, typed=f"erase {len(keys)}", shown=shown_now(batch), window=timedelta(0))
    with measured() as erasing:
        work_off_batch(batch)
    let_a_day_pass(batch)
    with measured() as ending:
        run = work_off_batch(batch)
    assert (batch.state, run.state) == (RequestBatch.State.COMPLETE, Run.State.COMPLETE), run.reason
    return {"subjects": len(keys), "phases": {"preview": counting, "erasure": erasing, "second scan": ending}}


def print_figures(batches: Sequence[dict[str, Any]]) -> None:
    """A line for each phase of each batch: figures of one case."""
    rows = [("batch, for each subject", "subjects", "statements", "commits", "processor s", "seconds")]
    for batch in batches:
        size = batch["subjects"]
        for phase, each in batch["phases"].items():
            counted = (f"{each[name] / size:.1f}" for name in ("statements", "commits"))
            timed = (f"{each[name] / size:.3f}" for name in ("processor", "seconds"))
            rows.append((phase, f"{size:,}", *counted, *timed))
    report.print_table(rows)


def targets_of(batches: Sequence[dict[str, Any]]) -> list[Target]:
    """Growth of a case from the smallest batch to the largest one; none of a single batch."""
    small, large = (choose(batches, key=lambda batch: batch["subjects"]) for choose in (min, max))
    if small is large:
        return []
    return [
        Target(
            f"batch: {title} of a case over those in the smallest",
            per_case(large, name) / per_case(small, name),
            "at most",
            most,
            "times",
        )
        for name, title, most in (("statements", "statements", 1.05), ("processor", "processor time", 1.2))
    ]


def per_case(batch: dict[str, Any], name: str) -> float:
    return float(sum(phase[name] for phase in batch["phases"].values()) / batch["subjects"])


def add_people(keys: Sequence[str]) -> None:
    from django.db import connection

    from memories_app.models import Memory
    from tests.erasure.batches import make_subjects

    subjects = make_subjects(keys)
    with connection.cursor() as cursor:
        for statement in (SESSIONS, ITEMS, ATTACH):
            cursor.execute(statement, {"keys": list(keys)})
    for subject in subjects:
        Memory.objects.create(statement="Drinks tea.", subject=subject, kind=Memory.Kind.FACT)


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Seconds, those of processors, statements and committed transactions of the block; there when it has ended."""
    from django.db import connection

    figures: dict[str, float] = {"statements": 0}

    def count(execute: Callable[..., Any], *arguments: Any) -> Any:
        figures["statements"] += 1
        return execute(*arguments)

    commits, computed, began = committed(), processor_seconds(), time.perf_counter()
    with connection.execute_wrapper(count):
        yield figures
    figures["seconds"] = time.perf_counter() - began
    figures["processor"] = processor_seconds() - computed
    figures["commits"] = committed() - commits


def processor_seconds() -> float:
    """Processor time of this process and of its connection's process in PostgreSQL."""
    from django.db import connection

    connection.ensure_connection()
    backend = psutil.Process(connection.connection.info.backend_pid).cpu_times()
    return time.process_time() + backend.user + backend.system


def committed() -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])
