"""Figures of the kinds of stores side by side, by `python -m tests.benchmarks.stores`: pages, erasure, download.

Each store gets the same sessions, one of them long and one very long. Pages are asked in one process, so that all kinds
pay the same for what is not the store; a download goes through a web server of its own, whose memory is looked at.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memadmin.settings import DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import load_average
from tests.benchmarks.processes import load_console
from tests.benchmarks.report import Target

DATABASE, AGENTS_DATABASE = "stores", "stores_elsewhere"
DOWNLOAD_MB = 100
ERASURE_S = 5
"""As long as an agent waits for a lock."""
SLOWER = 2
"""How many times as long as the main store's a page of Redis or SQLite may take."""


def main() -> None:
    arguments = parse_arguments()
    server = BenchServer(arguments.data_dir, is_tuned=False)
    for database in (DATABASE, AGENTS_DATABASE):
        server.create_empty(database)
    load = [load_average()]
    load_console(server, DATABASE)
    # Has models in it, which are there once the console is loaded.
    from tests.benchmarks import kinds

    figures = kinds.measure_all(
        *(arguments.sessions, arguments.items, arguments.requests, AGENTS_DATABASE, arguments.only),
        one_server=arguments.one_server,
    )
    load.append(load_average())
    report.print_table(list(rows_of(figures)))
    targets = list(targets_of(figures))
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "sessions": arguments.sessions,
        "items": arguments.items,
        "stores": figures,
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stores", description=__doc__)
    parser.add_argument(
        "--sessions",
        type=int,
        default=500,
        help="in each store; default: %(default)s",
    )
    parser.add_argument(
        "--items", type=int, default=2_000, help="of the long one, a tenth of the very long one's; default: 2,000"
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="STORE", help="default: all")
    parser.add_argument(
        "--one-server",
        action="store_true",
        help="download from one web server: quicker, and the memory of each download but the first says little",
    )
    parser.add_argument("--requests", type=int, default=20, help="how many of each page; default: 20")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench", help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="default: bench-stores.json in the data directory")
    arguments = parser.parse_args()
    arguments.json = arguments.json or arguments.data_dir / "bench-stores.json"
    return arguments


def rows_of(figures: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    yield ("store", "list p50 ms", "cpu", "timeline p50 ms", "cpu", "erased s", "download s", "download MB")
    for name, each in figures.items():
        pages = [f"{each[page][figure]:.1f}" for page in ("list", "timeline") for figure in ("p50_ms", "cpu_ms")]
        yield (name, *pages, f"{each['erased_s']:.2f}", f"{each['download_s']:.1f}", f"{each['download_mb']:.0f}")


def targets_of(figures: Mapping[str, Any]) -> Iterator[Target]:
    main_ms = figures["main"]["timeline"]["p50_ms"] if "main" in figures else None
    for name, each in figures.items():
        if main_ms and name in ("redis", "sqlite", "sqlite_url"):
            ratio = each["timeline"]["p50_ms"] / main_ms
            yield Target(f"timeline page of {name} beside main's", ratio, "at most", SLOWER, "x")
        title = f"download of the very long session from {name}: memory"
        yield Target(title, each["download_mb"], "at most", DOWNLOAD_MB, "MB")
        yield Target(f"erasure of the long session from {name}", each["erased_s"], "at most", ERASURE_S, "s")


if __name__ == "__main__":
    main()
