"""Response times by users at once and web processes, by `python -m tests.benchmarks.users`.

Each user asks for a page, reads it for a second, and asks for the next one: lists, timelines, a search, the overview.
The users run in threads of this process, on the same processors as the web server and the database.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from random import Random

from memadmin.settings import DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.console import CONSOLE, PREPARE
from tests.benchmarks.conversations import SIZES
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import Browser, Timing, load_average
from tests.benchmarks.processes import ConsoleProcess, load_console, say
from tests.benchmarks.report import Target
from tests.benchmarks.seed import seed
from tests.benchmarks.servers import running_server

THINKS_SECONDS = 1.0
IDLE_TIMES = 4
"""Wanted for 50 users with a web process for each of two cores."""
PAGES_IN_TURN = ("list", "forty", "subject", "forty", "ticket", "forty", "rare", "overview")
IDLE_PAGES = 40


def main() -> None:
    arguments = parse_arguments()
    size = SIZES[arguments.size]
    server = BenchServer(arguments.data_dir, is_tuned=arguments.size != "tiny")
    load_console(server)
    load = [load_average()]
    with ConsoleProcess(size.database) as console:
        if not server.is_seeded(size.database):
            say(f"Seeding {size.sessions:,} sessions.")
            seed(server, size, size.database)
            server.mark_seeded(size.database)
        prepared = console.run(PREPARE, True)
    # A page has at least one place, and most have twenty.
    paths = [place["path"] for key in PAGES_IN_TURN for place in prepared["places"][key]]
    Random(0).shuffle(paths)
    environment = {**server.environment(size.database), "DJANGO_SETTINGS_MODULE": CONSOLE}
    rows = []
    for workers in arguments.workers:
        with running_server(environment, server.data_dir / "users.log", workers=workers) as web:
            run(web.port, prepared["cookie"], paths, users=2 * workers, seconds=5, thinks=0)  # warms up each process
            idle = run(web.port, prepared["cookie"], paths[:IDLE_PAGES], users=1, seconds=IDLE_PAGES / 4, thinks=0)
            for users in arguments.users:
                say(f"{workers} workers, {users} users.")
                timing = run(web.port, prepared["cookie"], paths, users=users, seconds=arguments.seconds)
                rows.append({"workers": workers, "users": users, "idle_p50_ms": idle.p50, **timing.as_json()})
    load.append(load_average())
    print(f"{'workers':>8}{'users':>8}{'pages/s':>10}{'p50 ms':>10}{'p95 ms':>10}{'p95 / idle p50':>16}")
    for row in rows:
        rate, ratio = row["requests"] / arguments.seconds, row["p95_ms"] / row["idle_p50_ms"]
        print(
            f"{row['workers']:>8}{row['users']:>8}{rate:>10.1f}{row['p50_ms']:>10.0f}{row['p95_ms']:>10.0f}{ratio:>16.1f}"
        )
    targets = [
        Target(
            f"{row['users']} users, {row['workers']} web processes: p95 over the idle p50",
            row["p95_ms"] / row["idle_p50_ms"],
            "at most",
            IDLE_TIMES,
            "times",
        )
        for row in rows
    ]
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "sessions": size.sessions,
        "rows": rows,
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    say(f"Written to {arguments.json}.")


def run(
    port: int, cookie: str, paths: Sequence[str], *, users: int, seconds: float, thinks: float = THINKS_SECONDS
) -> Timing:
    """Times of the pages that so many users got in these seconds. Each begins elsewhere, and at another moment."""
    ends = time.perf_counter() + seconds

    def use(number: int) -> list[float]:
        browser, taken = Browser(port, cookie), []
        time.sleep(thinks * number / users)
        for path in chain(paths[number % len(paths) :], *([paths] * 1000)):
            started = time.perf_counter()
            if started > ends:
                break
            browser.get(path)
            taken.append((time.perf_counter() - started) * 1000)
            time.sleep(thinks)
        return taken

    with ThreadPoolExecutor(users) as pool:
        return Timing(list(chain.from_iterable(pool.map(use, range(users)))))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.users", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small", help="default: %(default)s")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4], help="default: 1 2 4")
    parser.add_argument("--users", type=int, nargs="+", default=[5, 10, 25, 50, 100], help="default: 5 10 25 50 100")
    parser.add_argument("--seconds", type=float, default=30, help="of each measurement; default: 30")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench", help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="default: bench-users.json in the data directory")
    arguments = parser.parse_args()
    arguments.json = arguments.json or arguments.data_dir / "bench-users.json"
    return arguments


if __name__ == "__main__":
    main()
