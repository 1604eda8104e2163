"""Figures of retention, by `python -m tests.benchmarks.retention`: the sweep beside raw deletes, and previews.

Sessions of 10 to 50 messages are swept, alone and while eight agents write, without and with a limit; as many rows are
deleted in chunks by plain DELETEs. A preview is measured beside one index-only scan of the items that it counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from memadmin.settings import DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.database import BenchServer
from tests.benchmarks.erasure import DATABASE, prepare, writes_during
from tests.benchmarks.measure import load_average
from tests.benchmarks.processes import ConsoleProcess, load_console, say
from tests.benchmarks.report import Target
from tests.benchmarks.writes import ITEMS

ITEMS_A_SESSION = 30
RAW_CHUNK = 166
"""Sessions of one transaction of the raw deletes: some 5,000 items, as many as a chunk of a sweep at most."""

LIMIT = 5_000
"""Rows a second of a run that takes 36 million in half of the night's four hours."""

# With the triggers of an attached store: the registry follows the times.
INSERT_SESSIONS = """
INSERT INTO agent_sessions (session_id, created_at, updated_at)
SELECT %(key)s || ':' || n, timezone('UTC', now()) - interval '50 days', timezone('UTC', now()) - interval '40 days'
FROM generate_series(1, %(sessions)s) AS n
"""
INSERT_ITEMS = """
INSERT INTO agent_messages (session_id, message_data, created_at)
SELECT %(key)s || ':' || n, %(item)s, timezone('UTC', now()) - interval '40 days'
FROM generate_series(1, %(sessions)s) AS n, generate_series(1, 10 + (n * 7) %% 41)
"""
OLDEST = """
SELECT session_id FROM sessions_app_sessionrecord
WHERE session_id LIKE %s AND last_activity_at < now() - interval '30 days'
ORDER BY last_activity_at, id LIMIT %s FOR UPDATE
"""
COUNT_ITEMS = "SELECT count(*) FROM agent_messages WHERE session_id LIKE %s"


def main() -> None:
    arguments = parse_arguments()
    server = BenchServer(arguments.data_dir, is_tuned=arguments.items >= 100_000)
    load_console(server)
    load = [load_average()]
    server.create_empty(DATABASE)
    try:
        with ConsoleProcess(DATABASE) as console:
            figures = asyncio.run(measure_all(server, console, arguments.items, arguments.seconds))
    finally:
        server.drop(DATABASE)
    load.append(load_average())
    targets = targets_of(figures)
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "figures": figures,
        "targets": [target.as_json() for target in targets],
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--items", type=int, default=100_000, help="that are swept; full size: 1,000,000")
    parser.add_argument("--seconds", type=float, default=5, help="that agents write without a sweep")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def targets_of(figures: dict[str, Any]) -> list[Target]:
    return [
        Target("sweep: items a second over those of raw chunked deletes", figures["sweep"], "at least", 1 / 3),
        Target("agents' writes during a sweep without a limit", figures["meanwhile_share"], "at least", 0.8),
        Target(f"the same at {LIMIT:,} rows a second", figures["limited_share"], "at least", 0.8),
        Target("preview over one index-only scan of its items", figures["preview"], "at most", 2, "times"),
        Target("resolution of a session at ten times the sessions", figures["resolution"], "at most", 1.5, "times"),
    ]


async def measure_all(server: BenchServer, console: ConsoleProcess, items: int, rest: float) -> dict[str, Any]:
    here, sessions = "tests.benchmarks.retention", max(items // ITEMS_A_SESSION, 1)
    console.run(f"{here}.make_tables")
    figures: dict[str, Any] = {"items": items}
    say(f"Measuring: raw deletes and a sweep of {items:,} items.")
    # The first ones load code and fill caches.
    for delete in ("delete_raw", "sweep"):
        console.run(f"{here}.add_old", "first", max(sessions // 10, 1))
        console.run(f"{here}.{delete}", "first")
    console.run(f"{here}.add_old", "raw", sessions)
    raw = console.run(f"{here}.delete_raw", "raw")
    console.run(f"{here}.add_old", "alone", sessions)
    figures["preview"] = console.run(f"{here}.preview_over_scan")
    alone = console.run(f"{here}.sweep", "alone")
    figures |= {"raw_per_s": raw, "alone_per_s": alone, "sweep": alone / raw}
    say("Measuring: sweeps while eight agents write.")
    # Each beside the calls before and after it, because other work on the machine comes and goes.
    before = await writes_during(server, lambda: time.sleep(rest))
    for name, limit in (("meanwhile", 0), ("limited", LIMIT)):
        console.run(f"{here}.add_old", name, sessions)
        meanwhile = await writes_during(server, partial(console.run, f"{here}.sweep", name, limit))
        after = await writes_during(server, lambda: time.sleep(rest))
        figures |= {f"{name}_share": 2 * meanwhile / (before + after)}
        before = after
    figures["resolution"] = console.run(f"{here}.resolution_growth")
    return figures


# --- in a process of the console --------------------------------------------------------------------------------------


def make_tables() -> None:
    from tests.agents import attach_main_store
    from tests.retention.policies import in_force

    prepare()
    attach_main_store()
    in_force("Old talks", days=30)


def add_old(key: str, sessions: int) -> None:
    from django.db import connection

    values: dict[str, Any] = {"key": key, "sessions": sessions, "item": json.dumps(ITEMS[0])}
    with connection.cursor() as cursor:
        cursor.execute(INSERT_SESSIONS, values)
        cursor.execute(INSERT_ITEMS, values)
        for table in ("agent_messages", "agent_sessions", "sessions_app_sessionrecord"):
            cursor.execute(f"VACUUM ANALYZE {table}")


def items_of(key: str) -> int:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(COUNT_ITEMS, [f"{key}:%"])
        return int(cursor.fetchone()[0])


def delete_raw(key: str) -> float:
    """Items a second, by what a chunk needs at least: the oldest sessions, and deletes in all tables that have rows.

    The registry's rows go with the sessions, for a session that is listed and not there is a defect. Nothing else is
    checked: no policy, no hold, no agent that writes, and what hangs on sessions in other tables would stay.
    """
    from django.db import connection, transaction

    items = items_of(key)
    began = time.perf_counter()
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(OLDEST, [f"{key}:%", RAW_CHUNK])
            some = [session_id for (session_id,) in cursor.fetchall()]
            if not some:
                break
            for table in ("agent_messages", "agent_sessions", "sessions_app_sessionrecord"):
                cursor.execute(f"DELETE FROM {table} WHERE session_id = ANY(%s)", [some])
    return items / (time.perf_counter() - began)


def sweep(key: str, limit: int = 0) -> float:
    """Items a second of a run, from its first chunk on, with a limit of rows a second or without one."""
    from django.conf import settings

    from memadmin.retention.models import SweepResult
    from memadmin.retention.sweep.starting import request_sweep
    from memadmin.runs.engine import carry_on

    items = items_of(key)
    # A run takes half of this time, so a second is no limit.
    rows = items + items // ITEMS_A_SESSION
    settings.RETENTION_WINDOW = timedelta(seconds=2 * rows / limit if limit else 1)
    # By what the last run forecast, so many are not expected: this one would ask.
    SweepResult.objects.update(backlog=None)
    run = carry_on(request_sweep())
    result = SweepResult.objects.get(run=run)
    assert (result.items, result.backlog) == (items, 0), (run.state, run.reason, run.exceptions)
    assert result.started_at, "it was not begun"
    assert result.ended_at, "it was not done"
    return items / float((result.ended_at - result.started_at).total_seconds())


def preview_over_scan() -> float:
    """Time of a preview over that of one index-only scan of its items; the median of five."""
    return statistics.median(preview_and_scan() for _ in range(5))


def preview_and_scan() -> float:
    from django.db import connection

    from memadmin.retention.policies.preview import preview
    from memadmin.retention.policies.services import rules_in_force

    rules = rules_in_force()
    (rule,) = [each for each in rules if each.length]
    began = time.perf_counter()
    counted = preview(rule, rules)
    taken = time.perf_counter() - began
    began = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT count(*) FROM (SELECT session_id FROM agent_messages ORDER BY session_id) AS items")
        assert cursor.fetchone() == (counted.items,)
        scan = time.perf_counter() - began
        cursor.execute("RESET enable_seqscan; RESET max_parallel_workers_per_gather")
    return taken / scan


def resolution_growth() -> float:
    """Time of one resolution among 100,000 over that among 10,000."""
    from memadmin.retention.policies.resolution import resolve
    from memadmin.retention.policies.rules import Facts
    from memadmin.retention.policies.services import rules_in_force

    rules = rules_in_force()
    seconds = []
    for count in (10_000, 100_000):
        at = datetime.now(UTC)
        scope: dict[str, Any] = {
            "store": "main",
            "session_pattern": "a",
            "agent": "",
            "label": [],
            "is_encrypted": False,
        }
        clocks = {"last_activity": at, "created": at}
        rows = [Facts("sessions", scope, clocks) for _ in range(count)]
        began = time.perf_counter()
        for row in rows:
            resolve(row, rules)
        seconds.append((time.perf_counter() - began) / count)
    return seconds[1] / seconds[0]


if __name__ == "__main__":
    main()
