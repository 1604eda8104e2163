"""The counts of all processes of this web server together."""

from __future__ import annotations

import fcntl
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.mmap_dict import MmapedDict
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from memadmin.deploy.counts.folder import VARIABLE
from memadmin.process_metrics import OF_PROCESS

ENDED = "ended"
"""Stands for the process id in the name of the file with the counts of all processes that ended."""

ADDED_UP = ("counter", "histogram")
"""Types of metrics, as files are named, whose counts stay when their process ends: a sum must not shrink."""


def counts_of_all() -> CollectorRegistry:
    """Sums of the processes of this web server; in any other process, its own counts."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return OF_PROCESS
    registry = CollectorRegistry()
    registry.register(CountsInFolder(Path(folder)))
    return registry


def merge_earlier() -> None:
    """Merges the counts of processes of this web server that ended, at the start of one that replaces them: also where
    nothing ever reads them."""
    if folder := os.environ.get(VARIABLE):
        with locked(Path(folder)):
            merge_ended(Path(folder))


class CountsInFolder(Collector):
    """The counts in the files of a folder, after those of ended processes were merged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def describe(self) -> Iterable[Metric]:
        """Nothing: the files are read when their counts are wanted."""
        return []

    def collect(self) -> Iterable[Metric]:
        with locked(self.folder):
            merge_ended(self.folder)
            collected: Iterable[Metric] = MultiProcessCollector(None, str(self.folder)).collect()  # type: ignore[no-untyped-call]
            return list(collected)


def merge_ended(folder: Path) -> None:
    """Adds the files of processes that ended to one file for each type, and removes them: a process that is replaced
    would leave two files for ever.

    Gauges of ended processes go: their requests and connections are gone. Call it with the folder locked.
    """
    for pid in {pid for path in folder.glob("*.db") if (pid := pid_of(path)) and not psutil.pid_exists(pid)}:
        mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
        for kind in ADDED_UP:
            add_to_ended(folder / f"{kind}_{pid}.db", folder / f"{kind}_{ENDED}.db")


def pid_of(path: Path) -> int | None:
    """Process id in the name of a file of prometheus_client, such as `counter_123.db`."""
    number = path.stem.rpartition("_")[2]
    return int(number) if number.isdecimal() else None


def add_to_ended(path: Path, ended: Path) -> None:
    """Adds a file's counts to those in `ended`, and removes it. Without such a file nothing is done."""
    if not path.exists():
        return
    sums: defaultdict[str, float] = defaultdict(float)
    for file in (path, ended) if ended.exists() else (path,):
        for key, count, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call]
            sums[key] += count
    merged = ended.with_suffix(".new")
    merged.unlink(missing_ok=True)
    writing = MmapedDict(str(merged))  # type: ignore[no-untyped-call]
    for key, count in sums.items():
        writing.write_value(key, count, 0.0)  # type: ignore[no-untyped-call]
    writing.close()  # type: ignore[no-untyped-call]
    merged.replace(ended)
    path.unlink()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Within the block no other process merges or reads the counts of this folder."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
