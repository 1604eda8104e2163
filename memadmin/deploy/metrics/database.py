"""Metrics read from the database at the time of a scrape, by the functions that the page System uses.

Labels are states and kinds from our code. The names of stores are no labels: those of a watched path come from file
names, which may name a person.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from django.db import Error, connection, transaction
from django.db.models import Count, F, Min, Q, Sum
from django.db.models.functions import Coalesce
from django.utils.timezone import now
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memadmin.audit.transparency import status
from memadmin.counting import count_up_to
from memadmin.deploy.system import components, figures
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.view_models import SOON
from memadmin.runs.models import Run
from memadmin.web.health import reasons_not_to_serve
from memories_app.review.queue import queue_status
from sessions_app import registry
from sessions_app.models import FenceOutbox, SessionStore

logger = logging.getLogger(__name__)

STATEMENT_SECONDS = 2
"""The longest that one statement may take."""

LONGEST_SECONDS = 5
"""After this time no further part is read. Prometheus waits for ten seconds by default."""

AUDIT_PROBLEMS = ("stopped", "refused", "unsequenced", "unsigned", "not_anchored", "unanchored")
STORE_STATES = ("ok", "degraded", "down", "unchecked")


def gauge(name: str, meaning: str, value: float | None) -> Metric:
    """A metric with one value, or without any."""
    metric = GaugeMetricFamily(name, meaning)
    if value is not None:
        metric.add_metric([], value)
    return metric


def gauges(name: str, meaning: str, label: str, values: Iterable[tuple[str, float]]) -> Metric:
    """A metric with a value for each value of a label."""
    metric = GaugeMetricFamily(name, meaning, labels=[label])
    for of_label, value in values:
        metric.add_metric([of_label], value)
    return metric


def seconds(length: timedelta | None) -> float:
    return length.total_seconds() if length else 0


def age(at: datetime | None) -> float:
    """Seconds since an instant; 0 without one."""
    return max(seconds(now() - at), 0) if at else 0


def timestamp(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def web() -> Iterator[Metric]:
    yield gauge("memadmin_ready", "1 if pages can be served, as in /readyz.", not reasons_not_to_serve())


def jobs() -> Iterator[Metric]:
    workers, waiting = figures.workers(), figures.waiting_jobs()
    yield gauges(
        "memadmin_workers",
        "Worker processes of the last hour, by state.",
        "state",
        [("running", workers.running), ("silent", workers.silent)],
    )
    yield gauges(
        "memadmin_jobs",
        "Background jobs by state; stuck and overdue ones need an operator, failed are those of a day.",
        "state",
        [("waiting", waiting.count), *figures.jobs_by_state().items()],
    )
    yield gauge("memadmin_oldest_waiting_job_seconds", "Age of the oldest job that waits.", age(waiting.oldest_at))


def runs() -> Iterator[Metric]:
    """One query of the unfinished runs."""
    counted = GaugeMetricFamily(
        "memadmin_runs", "Runs that have not ended, by kind and state.", labels=["kind", "state"]
    )
    slowest: datetime | None = None
    for kind, state, count, oldest in (
        Run.objects.filter(ended_at__isnull=True)
        .values("kind", "state")
        .annotate(run_count=Count("pk"), oldest=Min(Coalesce(F("chunk_at"), F("started_at"), F("requested_at"))))
        .values_list("kind", "state", "run_count", "oldest")
    ):
        counted.add_metric([kind, state], count)
        if state == Run.State.RUNNING:
            slowest = min(slowest or oldest, oldest)
    yield counted
    yield gauge(
        "memadmin_run_longest_silence_seconds",
        "Time since the last progress of the running run that made none for longest.",
        age(slowest),
    )


def audit() -> Iterator[Metric]:
    log, verdict = status.log_status(), status.latest_verdict()
    yield gauge("memadmin_audit_events", "Events with an index in the audit log.", log.size)
    yield gauge(
        "memadmin_audit_unsequenced_events", "Events without an index yet, counted up to 1,000.", log.unsequenced
    )
    yield gauge(
        "memadmin_audit_oldest_unsequenced_seconds",
        "Age of the oldest event without an index.",
        seconds(log.oldest_unsequenced),
    )
    yield gauge("memadmin_audit_unsigned_events", "Events with an index but without a checkpoint.", log.unsigned)
    yield gauge(
        "memadmin_audit_checkpoint_timestamp_seconds",
        "Time of the last checkpoint; none is made while nothing happens.",
        timestamp(log.checkpoint.at) if log.checkpoint else None,
    )
    yield gauge("memadmin_audit_anchors", "Configured anchors.", len(log.places))
    yield gauge(
        "memadmin_audit_anchors_failing",
        "Anchors whose last attempt failed.",
        sum(bool(place.failure) for place in log.places),
    )
    yield gauge(
        "memadmin_audit_anchor_timestamp_seconds",
        "Time at which a checkpoint was last anchored.",
        timestamp(log.anchored_at),
    )
    found = {problem.code for problem in log.problems}
    yield gauges(
        "memadmin_audit_problem",
        "1 while the audit log has this problem.",
        "problem",
        [(code, code in found) for code in AUDIT_PROBLEMS],
    )
    yield gauge(
        "memadmin_audit_verified_timestamp_seconds",
        "Time of the last verification of the audit log.",
        timestamp(verdict.at) if verdict else None,
    )
    yield gauge(
        "memadmin_audit_broken",
        "1 if the last verification found the audit log changed.",
        bool(verdict and verdict.verdict == "broken"),
    )


def stores() -> Iterator[Metric]:
    """Results of the worker's last checks; no store is asked."""
    counts, unfenced = dict.fromkeys(STORE_STATES, 0), 0
    for store in SessionStore.objects.only("pk", "checked_at", "last_check"):
        health = registry.last_health(store)
        counts[health.state if health else "unchecked"] += 1
        unfenced += bool(health and health.fence == "off")
    yield gauges("memadmin_stores", "Stores by the state that their last check found.", "state", counts.items())
    yield gauge("memadmin_stores_fence_off", "Stores that can have a fence and whose fence is off.", unfenced)
    dropped = SessionStore.objects.aggregate(total=Sum("dropped_writes"))["total"] or 0
    refusals = CounterMetricFamily(
        "memadmin_fence_dropped_writes", "Writes to erased sessions that fences discarded, without those of the outbox."
    )
    refusals.add_metric([], dropped)
    yield refusals
    yield gauge(
        "memadmin_fence_outbox",
        "Notes of fences that are not in the audit log yet, counted up to 1,000.",
        min(count_up_to(FenceOutbox.objects.all()), 1_000),
    )


def reviews() -> Iterator[Metric]:
    queue = queue_status()
    yield gauges(
        "memadmin_reviews",
        "Proposed memories that wait for a reviewer, counted up to 1,001; late ones exceed the review target.",
        "state",
        [("waiting", queue.waiting), ("late", queue.late), ("expiring", queue.ending)],
    )
    yield gauge(
        "memadmin_oldest_review_seconds", "Time that the oldest proposal has waited.", seconds(queue.oldest_for)
    )


def subject_requests() -> Iterator[Metric]:
    """One query over the open requests."""
    today = now().date()
    metric = GaugeMetricFamily(
        "memadmin_subject_requests",
        "Open requests of people by kind; due ones end within five days, overdue ones should have.",
        labels=["kind", "state"],
    )
    columns = {
        f"{kind}_{state}": Count("pk", filter=Q(kind=kind) & condition)
        for kind in SubjectRequest.Kind.values
        for state, condition in (
            ("open", Q()),
            ("due", Q(due_on__gte=today, due_on__lte=today + SOON)),
            ("overdue", Q(due_on__lt=today)),
        )
    }
    for name, count in SubjectRequest.objects.open().order_by().aggregate(**columns).items():
        kind, _, state = name.partition("_")
        metric.add_metric([kind, state], count)
    yield metric


def disk() -> Iterator[Metric]:
    yield gauges(
        "memadmin_disk_used_ratio",
        "Used share of the disk with this folder of memadmin.",
        "folder",
        [(name.lower(), components.DiskUsage.of(path).share) for name, path in components.folders()],
    )


PARTS: dict[str, Callable[[], Iterator[Metric]]] = {
    "web": web,
    "jobs": jobs,
    "runs": runs,
    "audit": audit,
    "stores": stores,
    "reviews": reviews,
    "subject_requests": subject_requests,
    "disk": disk,
}


class DatabaseMetrics(Collector):
    """All parts, in one transaction of about thirty statements of a few rows each, however much is stored.

    A part that fails or is too slow is missing and reported in `memadmin_part_up`; it hides no other. Nothing is
    raised.
    """

    def describe(self) -> Iterable[Metric]:
        """Nothing: a registry must not read the database when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        is_up, found = dict.fromkeys(PARTS, False), []
        until = time.monotonic() + LONGEST_SECONDS
        try:
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{STATEMENT_SECONDS}s"])
                for name in PARTS:
                    if time.monotonic() < until and (metrics := read(name)) is not None:
                        found += metrics
                        is_up[name] = True
        except Error as problem:
            logger.warning("The database cannot be read for the metrics: %s", type(problem).__name__)
        yield from found
        yield gauges("memadmin_part_up", "1 if this part of the metrics could be read.", "part", is_up.items())
        yield gauge("memadmin_up", "1 if all parts of the metrics could be read.", all(is_up.values()))


def read(name: str) -> list[Metric] | None:
    """The metrics of a part; None if it failed. Raises Error when the connection is lost."""
    try:
        with transaction.atomic():
            return list(PARTS[name]())
    # Whatever breaks one part: the alerts on the others go on.
    except Exception as problem:
        logger.warning("The part %s of the metrics cannot be read: %s", name, type(problem).__name__)
        if not connection.is_usable():
            raise
        return None
