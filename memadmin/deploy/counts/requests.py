"""Metrics of the web processes: requests by page, and use of the database connections.

Labels are names from our code: a page is named by its URL pattern, never by its path, which contains ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from django.core.signals import request_finished
from django.db import connection
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from prometheus_client import Counter, Gauge, Histogram

from memadmin.process_metrics import OF_PROCESS
from memadmin.web.request_ids import method_of, page_of

REQUESTS = Counter("memadmin_requests", "Answered requests.", ["page", "method", "status"], registry=OF_PROCESS)
BOUNDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
"""Upper bounds of the durations counted, in seconds."""

SECONDS = Histogram(
    "memadmin_request_seconds",
    "Seconds until the answer to a request begins.",
    ["page"],
    buckets=BOUNDS,
    registry=OF_PROCESS,
)
IN_PROGRESS = Gauge(
    "memadmin_requests_in_progress",
    "Requests without an answer yet.",
    registry=OF_PROCESS,
    multiprocess_mode="livesum",
)
POOL = Gauge(
    "memadmin_pool_connections",
    "Database connections of the web processes by state, at the end of their last requests.",
    ["state"],
    registry=OF_PROCESS,
    multiprocess_mode="livesum",
)
POOL_SIZE = Gauge(
    "memadmin_pool_connections_max",
    "Database connections that the web processes may have.",
    registry=OF_PROCESS,
    multiprocess_mode="livesum",
)
POOL_WAITS = Counter("memadmin_pool_waits", "Requests that waited for a connection.", registry=OF_PROCESS)
POOL_WAIT_SECONDS = Counter(
    "memadmin_pool_wait_seconds", "Seconds that requests waited for a connection.", registry=OF_PROCESS
)
POOL_FAILURES = Counter("memadmin_pool_failures", "Requests that got no connection in time.", registry=OF_PROCESS)


def count_requests(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Middleware: counts each request by page, method and status, with its duration. The outermost, so that it sees
    what the others answer.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        began = time.monotonic()
        IN_PROGRESS.inc()
        try:
            response = get_response(request)
        finally:
            IN_PROGRESS.dec()
        page = page_of(request)
        REQUESTS.labels(page, method_of(request), str(response.status_code)).inc()
        SECONDS.labels(page).observe(time.monotonic() - began)
        return response

    return answer


def count_connections(**_: Any) -> None:
    """Receiver, after a request has returned its connection: use of the pool, if this process has one."""
    pool = connection.pool  # type: ignore[attr-defined]
    if pool is None:
        return
    # Counters since the last call, which no other request gets, and the state now.
    figures = pool.pop_stats()
    POOL_SIZE.set(figures["pool_max"])
    POOL.labels("idle").set(figures["pool_available"])
    POOL.labels("in_use").set(figures["pool_size"] - figures["pool_available"])
    POOL.labels("awaited").set(figures["requests_waiting"])
    POOL_WAITS.inc(figures.get("requests_queued", 0))
    POOL_WAIT_SECONDS.inc(figures.get("requests_wait_ms", 0) / 1_000)
    POOL_FAILURES.inc(figures.get("requests_errors", 0))


request_finished.connect(count_connections, dispatch_uid="memadmin.deploy.metrics")
