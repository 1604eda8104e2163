"""Number, failures and durations of the pages that a web server has answered."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import inf
from pathlib import Path

import psutil
from prometheus_client.metrics_core import Metric

from memadmin.deploy.counts.folder import VARIABLE
from memadmin.deploy.counts.processes import counts_of_all

NOT_COUNTED = frozenset({"static", "healthz", "readyz", "metrics", "unknown"})
"""Answers that nobody waits for, and addresses that are no page."""

SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Responses:
    """Pages answered since the web server began; failed are those with status 500 and above."""

    began_at: datetime
    answered: int
    failed: int
    within: float | None
    """Seconds within which 95 % of the answers began, rounded up to the next bound of the histogram; infinite above the
    last bound, None without answers."""

    def per_minute(self, at: datetime) -> float:
        """The average since the web server began; of its first minute, the number so far."""
        return self.answered / max((at - self.began_at) / timedelta(minutes=1), 1)


def responses() -> Responses:
    """Responses of all processes of this web server; of this process alone if they do not share their counts."""
    folder = os.environ.get(VARIABLE)
    pid = int(Path(folder).name) if folder else os.getpid()
    began_at = datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC)
    return responses_in(counts_of_all().collect(), began_at)


def responses_in(metrics: Iterable[Metric], began_at: datetime) -> Responses:
    answered, failed = 0.0, 0.0
    up_to: defaultdict[float, float] = defaultdict(float)
    for metric in metrics:
        for sample in metric.samples:
            if sample.labels.get("page") in NOT_COUNTED:
                continue
            if sample.name == "memadmin_requests_total":
                answered += sample.value
                failed += sample.value if sample.labels["status"].startswith("5") else 0
            elif sample.name == "memadmin_request_seconds_bucket":
                up_to[float(sample.labels["le"])] += sample.value
    wanted = SHARE * up_to[inf]
    within = next((bound for bound, count in sorted(up_to.items()) if count >= wanted), None) if up_to[inf] else None
    return Responses(began_at, int(answered), int(failed), within)
