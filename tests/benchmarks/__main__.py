"""Seeds what is missing, takes all figures, prints them beside their targets and writes them as JSON."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from memadmin.settings import DATA_DIR
from tests.benchmarks import report
from tests.benchmarks.attaching import measure_attaching
from tests.benchmarks.console import measure_console
from tests.benchmarks.conversations import SIZES
from tests.benchmarks.database import BenchServer
from tests.benchmarks.measure import load_average
from tests.benchmarks.processes import load_console, say
from tests.benchmarks.writes import measure_writes

CALLS_A_REQUEST = 10
"""Writes are short: it takes more of them."""
SIZE_HELP = (
    "full has 4.89 million items, for ratios to Django admin and a timeline of 100,000 items; default: %(default)s"
)


def main() -> None:
    arguments = parse_arguments()
    size, requests = SIZES[arguments.size], arguments.requests
    server = BenchServer(arguments.data_dir, is_tuned=arguments.size != "tiny")
    load_console(server)
    load = [load_average()]
    figures = measure_console(server, size, requests)
    load.append(load_average())
    writes = measure_writes(server, size.tenth(), requests * CALLS_A_REQUEST)
    load.append(load_average())
    attaching = measure_attaching(server, size.a_million_items_at_most())
    load.append(load_average())
    targets = [
        *report.page_targets(figures.pages),
        *report.throughput_targets(figures.requests_per_s),
        *report.memory_targets(figures.peak_memory_mb),
        *report.write_targets(writes),
        *report.attach_targets(attaching),
    ]
    report.print_pages(figures.pages)
    report.print_attaching(attaching)
    report.print_targets(targets)
    result = {
        "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": report.machine(),
        "load": load,
        "size": {"sessions": size.sessions, "items": size.items, "subjects": size.subjects},
        "preparation_s": figures.preparation,
        "pages": {
            key: {name: timing.as_json() for name, timing in each.items()} for key, each in figures.pages.items()
        },
        "requests_per_s": figures.requests_per_s,
        "peak_memory_mb": figures.peak_memory_mb,
        "add_items": [each.as_json() for each in writes],
        "attach_store": [each.as_json() for each in attaching],
        "targets": [target.as_json() for target in targets],
    }
    arguments.json.write_text(json.dumps(result, indent=1) + "\n")
    say(f"Written to {arguments.json}.")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="small", help=SIZE_HELP)
    parser.add_argument("--requests", type=int, default=200, help="how many of each page; default: 200")
    parser.add_argument("--data-dir", type=Path, default=DATA_DIR / "bench", help="default: %(default)s")
    parser.add_argument("--json", type=Path, help="default: bench-SIZE.json in the data directory")
    arguments = parser.parse_args()
    arguments.json = arguments.json or arguments.data_dir / f"bench-{arguments.size}.json"
    return arguments


if __name__ == "__main__":
    main()
