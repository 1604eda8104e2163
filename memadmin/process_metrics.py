"""Metrics that a process counts by itself: jobs, runs and calls to stores. Those of pages: `memadmin/deploy/counts`.

Labels are names from our code: of jobs, kinds and states. A process of the web server shares its counts with the
others, so this is imported after `memadmin.deploy.counts.folder.share_counts`; a worker answers Prometheus at a port of
its own (`memadmin/web/metrics_port.py`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

# The time of the first count of each label is of no use, and would double the counters.
disable_created_metrics()  # type: ignore[no-untyped-call]

OF_PROCESS = CollectorRegistry()

WORK_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds of the durations of jobs, in seconds."""
CALL_BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the durations of calls to stores and of chunks, in seconds."""

JOBS = Counter(
    "memadmin_jobs_ended", "Background jobs that this worker ended.", ["job", "outcome"], registry=OF_PROCESS
)
JOB_SECONDS = Histogram(
    "memadmin_job_seconds", "Seconds that background jobs took.", ["job"], buckets=WORK_BOUNDS, registry=OF_PROCESS
)
JOBS_IN_PROGRESS = Gauge(
    "memadmin_jobs_in_progress",
    "Background jobs that this worker works on.",
    registry=OF_PROCESS,
    multiprocess_mode="livesum",
)
RUN_CHUNK_SECONDS = Histogram(
    "memadmin_run_chunk_seconds",
    "Seconds that chunks of runs took, each a transaction.",
    ["kind"],
    buckets=CALL_BOUNDS,
    registry=OF_PROCESS,
)
RUN_ROWS = Counter("memadmin_run_rows", "Rows that runs have done.", ["kind"], registry=OF_PROCESS)
RUN_FAULTS = Counter("memadmin_run_faults", "Attempts of runs that failed.", ["kind"], registry=OF_PROCESS)
STORE_CALLS = Counter(
    "memadmin_store_calls", "Calls to stores by kind of store and outcome.", ["kind", "outcome"], registry=OF_PROCESS
)
STORE_SECONDS = Histogram(
    "memadmin_store_call_seconds",
    "Seconds that calls to stores took.",
    ["kind"],
    buckets=CALL_BOUNDS,
    registry=OF_PROCESS,
)

DONE, FAILED = "done", "failed"
"""Outcomes of jobs and calls."""


@contextmanager
def counting_job(name: str) -> Iterator[None]:
    """Counts the block as a job, which failed if it raises."""
    began, outcome = time.monotonic(), FAILED
    JOBS_IN_PROGRESS.inc()
    try:
        yield
        outcome = DONE
    finally:
        JOBS_IN_PROGRESS.dec()
        JOBS.labels(name, outcome).inc()
        JOB_SECONDS.labels(name).observe(time.monotonic() - began)


@contextmanager
def counting_store_call(kind: str) -> Iterator[None]:
    """Counts the block as a call to a store of this kind, which failed if it raises."""
    began, outcome = time.monotonic(), FAILED
    try:
        yield
        outcome = DONE
    finally:
        STORE_CALLS.labels(kind, outcome).inc()
        STORE_SECONDS.labels(kind).observe(time.monotonic() - began)
