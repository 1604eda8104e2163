"""Figures of the audit log, by `python -m tests.benchmarks.audit`: verifying, proving, sequencing, and what it costs.

The log is as large as is asked for, 200,000 events by default, and stays for the next time. Peak memory of the verifier
and a proof's time depend on the size; processor time of the verifier for an event does not. Wall time depends on what
else the machine does; processor time does not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from memadmin.audit.transparency import verifier
from memadmin.settings import CHECKOUT_DIR, DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import load_average
from tests.benchmarks.processes import ConsoleProcess, load_console, say
from tests.benchmarks.report import Target

WRITERS = 16
OTHER_WORK_SECONDS = 0.005
"""What a transaction does besides, as in the experiment behind the design."""
EVENTS_PER_SECOND = 500
WARM_UP = 20
"""Transactions of each writer that are not counted: a new connection reads the catalogue first."""

INSERT_MANY = """
INSERT INTO audit_event (type, actor_kind, object_kind, object_ref, subject_ref, counters)
SELECT 'session.viewed', 'database', 'sessions_app.sessionrecord', gen_random_uuid(), gen_random_uuid(),
       jsonb_build_object('items', item %% 100)
FROM generate_series(1, %s) AS item
"""
INSERT_ONE = """
INSERT INTO audit_event (type, actor_kind, object_kind, object_ref, subject_ref, counters)
VALUES ('session.viewed', 'database', 'sessions_app.sessionrecord', gen_random_uuid(), gen_random_uuid(),
        '{"items": 3}')
"""
PLAIN_WORK = "INSERT INTO plain_work (body) VALUES ('something')"
MAKE_PLAIN = """
DROP TABLE IF EXISTS plain_work;
CREATE TABLE plain_work (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text)
"""
LAGS = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(leaf.xmin) - pg_xact_commit_timestamp(event.xmin)) * 1000
FROM audit_leaf AS leaf JOIN audit_event AS event ON event.number = leaf.event_number WHERE leaf.index >= %s
"""
PROVE = "tests.benchmarks.proving.milliseconds"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a program needed."""

    wall_s: float
    cpu_s: float
    memory_mb: float

    def as_json(self) -> dict[str, float]:
        return {"wall_s": round(self.wall_s, 1), "cpu_s": round(self.cpu_s, 1), "memory_mb": round(self.memory_mb)}


def main() -> None:
    arguments = parse_arguments()
    os.environ["MEMADMIN_ANCHOR_PATH"] = "none"
    server = BenchServer(arguments.data_dir, is_tuned=arguments.events >= 100_000)
    remember_commit_times(server)
    database = f"audit_{arguments.events}"
    load = [load_average()]
    load_console(server)
    with ConsoleProcess(database) as console:
        made = make_log(server, database, console, arguments.events)
        say(f"Measuring {arguments.proofs} proofs.")
        proofs = sorted(console.run(PROVE, arguments.proofs))
        # An export is an event, too, and waits for its place.
        with sequencing(server, database):
            export = arguments.data_dir / f"{database}.jsonl"
            verified = measure_verifier(server, database, console, export)
            lags = measure_lag(server, database, arguments.seconds)
            shares = measure_throughput(server, database, arguments.seconds, arguments.rounds)
    load.append(load_average())
    targets = list(targets_of(arguments.events, verified, proofs, lags, shares))
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "events": arguments.events,
        "made_s": made,
        "verified": {name: usage.as_json() for name, usage in verified.items()},
        "proof_ms": {"p50": at_share(proofs, 0.5), "p95": at_share(proofs, 0.95)},
        "lag_ms": {name: at_share(lags, share) for name, share in (("p50", 0.5), ("p99", 0.99), ("most", 1))},
        "throughput_share": round(statistics.median(shares), 3),
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    say(json.dumps(result, indent=1))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.audit", description=__doc__)
    parser.add_argument("--events", type=int, default=200_000, help="in the log; default: 200,000")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement under load; default: 20")
    parser.add_argument("--rounds", type=int, default=6, help="in which kinds of transactions take turns; default: 6")
    parser.add_argument("--proofs", type=int, default=200, help="default: 200")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench", help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="default: bench-audit.json in the data directory")
    arguments = parser.parse_args()
    arguments.json = arguments.json or arguments.data_dir / "bench-audit.json"
    return arguments


def targets_of(
    events: int,
    verified: dict[str, Usage],
    proofs: Sequence[float],
    lags: Sequence[float],
    shares: Sequence[float],
) -> Iterator[Target]:
    for name, usage in verified.items():
        seconds = usage.cpu_s * 1_000_000 / events
        yield Target(f"verifying from {name}: processor time for a million events", seconds, "at most", 60, "s")
        yield Target(f"verifying {events:,} events from {name}: memory", usage.memory_mb, "at most", 300, "MB")
    yield Target("inclusion proof: p95", at_share(proofs, 0.95), "at most", 50, "ms")
    name = f"sequencing lag at {EVENTS_PER_SECOND} events/s: p99"
    yield Target(name, at_share(lags, 0.99), "at most", 250, "ms")
    name = f"transactions of an event over those of a bare row, {WRITERS} writers"
    yield Target(name, statistics.median(shares), "at least", 0.85, "times")


def at_share(values: Sequence[float], share: float) -> float:
    return round(sorted(values)[int(share * (len(values) - 1))], 2)


def remember_commit_times(server: BenchServer) -> None:
    """So that the lag is known of each event, from one commit to the other."""
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        row = connection.execute("SELECT current_setting('track_commit_timestamp')").fetchone()
    if row != ("on",):
        server.restart()


def make_log(server: BenchServer, database: str, console: ConsoleProcess, events: int) -> dict[str, float]:
    """Seconds that it took; nothing where it is there already."""
    seconds: dict[str, float] = {}
    is_there = server.is_seeded(database)
    if not is_there:
        server.create_empty(database)
    # A log that stayed from the last time is measured as today's tables have it.
    console.command("migrate", "--verbosity=0")
    if not is_there:
        say(f"Writing {events:,} events.")
        with timed(seconds, "written"), server.connect(database) as connection:
            for begin in range(0, events, 50_000):
                connection.execute(INSERT_MANY, [min(50_000, events - begin)])
        say("Sequencing them.")
        with timed(seconds, "sequenced"):
            console.command("sequence_audit", "--once")
        with server.connect(database) as connection:
            connection.execute("VACUUM ANALYZE")
        server.mark_seeded(database)
    return seconds


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    began = time.perf_counter()
    yield
    seconds[name] = round(time.perf_counter() - began, 1)


def measure_verifier(server: BenchServer, database: str, console: ConsoleProcess, export: Path) -> dict[str, Usage]:
    say("Exporting.")
    began = time.perf_counter()
    console.command("export_audit", str(export))
    say(f"{export.stat().st_size / 1e6:.0f} MB in {time.perf_counter() - began:.0f} s. Verifying.")
    address = server.address()
    dsn = make_conninfo(host=address["host"], port=str(address["port"]), user=address["user"], dbname=database)
    try:
        return {"an export": usage_of([str(export)]), "the database": usage_of(["--dsn", dsn])}
    finally:
        export.unlink()


def usage_of(arguments: list[str]) -> Usage:
    """Of the verifier alone; the database's own processes are not counted."""
    began, peak = time.perf_counter(), 0
    started = subprocess.Popen([sys.executable, "-I", verifier.__file__, *arguments], stdout=subprocess.DEVNULL)
    watched = Path(f"/proc/{started.pid}/status")
    # What the system sums up at the end counts our own memory in, from before the program was loaded.
    while (ended := os.wait4(started.pid, os.WNOHANG))[0] == 0:
        if found := re.search(r"VmHWM:\s+(\d+) kB", watched.read_text()):
            peak = max(peak, int(found[1]))
        time.sleep(0.05)
    _, status, used = ended
    # The newest events wait for their checkpoint, the one of the export among them.
    assert os.waitstatus_to_exitcode(status) in (0, 3), "the log is not whole"
    return Usage(time.perf_counter() - began, used.ru_utime + used.ru_stime, peak / 1024)


@contextmanager
def sequencing(server: BenchServer, database: str) -> Iterator[None]:
    environment = server.environment(database)
    started = subprocess.Popen(
        [sys.executable, "manage.py", "sequence_audit"], env=environment, cwd=CHECKOUT_DIR, stdout=subprocess.PIPE
    )
    assert started.stdout
    started.stdout.readline()
    try:
        yield
    finally:
        started.terminate()
        started.wait()


def measure_lag(server: BenchServer, database: str, seconds: float) -> list[float]:
    """Milliseconds from an event's commit to its leaf's, at a steady rate of events from some connections."""
    say(f"Measuring the lag at {EVENTS_PER_SECOND} events/s.")
    done = threading.Event()

    def write(seed: int) -> None:
        pause = WRITERS / EVENTS_PER_SECOND
        due = time.monotonic() + random.Random(seed).random() * pause
        with server.connect(database) as connection:
            is_first = True
            while is_first or not done.is_set():
                time.sleep(max(0, due - time.monotonic()))
                connection.execute(INSERT_ONE)
                due += pause
                is_first = False

    with server.connect(database) as connection:
        (first,) = connection.execute("SELECT max(index) + 1 FROM audit_leaf").fetchone() or (0,)
        with ThreadPoolExecutor(WRITERS) as writers:
            writing = [writers.submit(write, seed) for seed in range(WRITERS)]
            time.sleep(seconds)
            done.set()
            for each in writing:
                each.result()
        wait_until_sequenced(connection)
        return [float(lag) for (lag,) in connection.execute(LAGS, [first])]


def measure_throughput(server: BenchServer, database: str, seconds: float, rounds: int) -> list[float]:
    """Transactions of an event over those of one bare row, in each round, while a sequencer works."""
    say(f"Measuring transactions of {WRITERS} writers.")
    with server.connect(database) as connection:
        connection.execute(MAKE_PLAIN)
        shares = []
        statements = [PLAIN_WORK, INSERT_ONE]
        for _ in range(rounds):
            rates = {}
            for statement in statements:
                wait_until_sequenced(connection)  # the events of the previous turn are not this one's
                rates[statement] = transactions(server, database, seconds / rounds, statement)
            shares.append(rates[INSERT_ONE] / rates[PLAIN_WORK])
            statements.reverse()
        return shares


def wait_until_sequenced(connection: psycopg.Connection) -> None:
    # A row without columns counts as false.
    while connection.execute("SELECT FROM audit_pending LIMIT 1").fetchone() is not None:
        time.sleep(0.1)


def transactions(server: BenchServer, database: str, seconds: float, statement: str) -> float:
    counts = [0] * WRITERS
    begun = threading.Barrier(WRITERS + 1)
    stop = threading.Event()

    def work(writer: int) -> None:
        address: dict[str, Any] = server.address()
        with psycopg.connect(**address, dbname=database) as connection:
            for done in itertools.count(-WARM_UP):
                if done == 0:
                    begun.wait()
                connection.execute(statement)
                time.sleep(OTHER_WORK_SECONDS)
                connection.commit()
                counts[writer] = max(0, done + 1)
                if stop.is_set():
                    break

    with ThreadPoolExecutor(WRITERS) as writers:
        working = [writers.submit(work, writer) for writer in range(WRITERS)]
        begun.wait()
        time.sleep(seconds)
        stop.set()
        for each in working:
            each.result()
    return sum(counts) / seconds


if __name__ == "__main__":
    main()
