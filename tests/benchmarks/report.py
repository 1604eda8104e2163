"""What was found, for a person and for a program."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import django
import psutil

from tests.benchmarks.attaching import AttachFigures
from tests.benchmarks.measure import Timing
from tests.benchmarks.pages import PAGES
from tests.benchmarks.writes import WriteFigures

Timings = Mapping[str, Mapping[str, Timing]]
"""By page, then by who was asked."""


@dataclass(frozen=True, slots=True)
class Target:
    """One figure that we want, and what it is."""

    name: str
    measured: float
    wanted: Literal["at most", "at least"]
    bound: float
    unit: str = ""

    @property
    def is_met(self) -> bool:
        return self.measured <= self.bound if self.wanted == "at most" else self.measured >= self.bound

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "measured": round(self.measured, 3), "met": self.is_met}


MEMORY_MB = 200
SHARE_OF_WRITES = {1: 0.85, 8: 0.95}
"""Calls with registry and fence over those without, by the number of clients."""
PAUSE_MS = 1_000
"""Twice what a step of `attach_store` waits for a lock at most, with writers waiting behind it."""
ENDS_APART = 1.2
"""The slower of the timeline's two ends over the quicker one."""
OVER_LIST = "over the session list"


def page_targets(timings: Timings) -> Iterator[Target]:
    session_list = timings["list"]["console"].p50
    for key, each in timings.items():
        page, console = PAGES[key], each["console"].p50
        growth = console / each["console_tenth"].p50
        if page.at_most_lists:
            yield Target(f"{page.title}: {OVER_LIST}", console / session_list, "at most", page.at_most_lists, "times")
        yield Target(f"{page.title}: over a tenth", growth, "at most", page.at_most_growth, "times")
        if page.admin_at_least:
            name = f"{page.title}: Django admin's time over ours"
            yield Target(name, each["admin"].p50 / console, "at least", page.admin_at_least, "times")
    head, tail = timings["head"]["console"].p50, timings["tail"]["console"].p50
    apart = max(head, tail) / min(head, tail)
    yield Target("timeline, head and tail: slower over quicker", apart, "at most", ENDS_APART, "times")


def throughput_targets(rates: Mapping[int, float]) -> Iterator[Target]:
    fewest, most = min(rates), max(rates)
    name = f"session list: requests/s of {most} clients over those of {fewest}"
    yield Target(name, rates[most] / rates[fewest], "at least", 1, "times")


def memory_targets(peak_mb: float | None) -> Iterator[Target]:
    if peak_mb is not None:
        yield Target("peak memory of the web process", peak_mb, "at most", MEMORY_MB, "MB")


def write_targets(writes: Sequence[WriteFigures]) -> Iterator[Target]:
    for each in writes:
        name = f"add_items, clients: {each.clients}: calls/s with registry and fence over those without"
        yield Target(name, each.share("attached"), "at least", SHARE_OF_WRITES[each.clients], "times")


def attach_targets(attaching: Sequence[AttachFigures]) -> Iterator[Target]:
    for each in attaching:
        name = f"attach_store {each.tables}, {each.items:,} items: longest add_items meanwhile"
        yield Target(name, each.longest_ms, "at most", PAUSE_MS, "ms")


def machine() -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1024**3),
        "python": platform.python_version(),
        "django": django.__version__,
    }


def print_attaching(attaching: Sequence[AttachFigures]) -> None:
    rows = [("attach_store", "items", "seconds", "longest add_items ms", "without attaching ms")]
    for each in attaching:
        figures = (f"{each.items:,}", f"{each.seconds:.1f}", f"{each.longest_ms:.0f}", f"{each.longest_without_ms:.0f}")
        rows.append((each.tables, *figures))
    print_table(rows)


def print_timings(title: str, timings: Mapping[str, Timing]) -> None:
    rows = [(f"{title}, ms", "p50", "p95")]
    rows += [(name, f"{each.p50:.1f}", f"{each.p95:.1f}") for name, each in timings.items()]
    print_table(rows)


def print_pages(pages: Timings) -> None:
    """Milliseconds; cpu is what the web process computed for a request."""
    rows = [
        (
            "ms",
            "page p50",
            "p95",
            "cpu",
            "tenth p50",
            "full/tenth",
            "raw p50",
            "page/raw",
            "admin p50",
            "cpu",
            "admin/page",
        )
    ]
    for key, timings in pages.items():
        console, admin = timings["console"], timings.get("admin")
        rows.append(
            (
                PAGES[key].title,
                f"{console.p50:.1f}",
                f"{console.p95:.1f}",
                f"{console.cpu_ms:.1f}",
                f"{timings['console_tenth'].p50:.1f}",
                f"{console.p50 / timings['console_tenth'].p50:.2f}",
                f"{timings['raw'].p50:.2f}",
                f"{console.p50 / timings['raw'].p50:.0f}",
                f"{admin.p50:.1f}" if admin else "",
                f"{admin.cpu_ms:.1f}" if admin else "",
                f"{admin.p50 / console.p50:.1f}" if admin else "",
            )
        )
    print_table(rows)


def print_targets(targets: Sequence[Target]) -> None:
    rows = [("target", "", "measured", "")]
    for target in targets:
        rows.append(
            (
                target.name,
                f"{target.wanted} {target.bound:g} {target.unit}".strip(),
                f"{target.measured:.3g} {target.unit}".strip(),
                "" if target.is_met else "MISSED",
            )
        )
    print_table(rows)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")
    sys.stdout.write("\n")
