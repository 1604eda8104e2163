"""The counts of all processes of this web server together."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from memadmin.deploy.counts.folder import VARIABLE
from memadmin.process_metrics import OF_PROCESS


def counts_of_all() -> CollectorRegistry:
    """Sums of the processes of this web server; in any other process, its own counts."""
    folder = os.environ.get(VARIABLE)
    if not folder:
        return OF_PROCESS
    forget_state_of_dead(Path(folder))
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    return registry


def forget_state_of_dead(folder: Path) -> None:
    """Removes the gauges of processes that ended: their requests and connections are gone. Their counts stay."""
    for path in folder.glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
