"""The findings of `check_deploy` as the page shows them: computed by one request at a time, and kept with their age."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.cache import cache
from django.db import connection, transaction
from django.template.defaultfilters import pluralize
from django.utils.timezone import now

from memadmin.deploy import checks
from memadmin.deploy.checks.finding import CheckFinding

RESULT, RUNNING = "system-check-result", "system-check-running"
"""Keys in the cache, which all web servers share."""

KEPT_SECONDS = 7 * 24 * 3600
LONGEST_SECONDS = 60
"""After this time no further check begins."""
STATEMENT_SECONDS = 15
"""The longest that one query of a check may take."""
STALE_AFTER = timedelta(minutes=5)
OF_SAVEPOINTS = ("SAVEPOINT", "RELEASE", "ROLLBACK")
"""Statements without a time limit: setting one would fail before the ROLLBACK of a failed transaction."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Findings, errors first, with the time at which the checks began and the seconds that they took."""

    at: datetime
    seconds: float
    findings: list[CheckFinding]

    @property
    def is_stale(self) -> bool:
        return now() - self.at > STALE_AFTER

    @property
    def errors(self) -> str:
        """The number of errors in words; empty without any."""
        return self._count("error")

    @property
    def warnings(self) -> str:
        return self._count("warning")

    def _count(self, level: str) -> str:
        count = sum(finding.level == level for finding in self.findings)
        return f"{count} {level}{pluralize(count)}" if count else ""


def last_result() -> CheckResult | None:
    """The last result; None if there is none of the last week. One query."""
    kept: dict[str, Any] | None = cache.get(RESULT)
    if kept is None:
        return None
    findings = [CheckFinding(**finding) for finding in kept["findings"]]
    return CheckResult(datetime.fromisoformat(kept["at"]), kept["seconds"], findings)


def is_running() -> bool:
    """True while a request runs the checks. One query."""
    return cache.get(RUNNING) is not None


def run_checks() -> bool:
    """Runs all checks and keeps their findings; False if another request does so already.

    Takes a minute and one check more at most: a query that takes too long is a finding of its check, and checks for
    which no time is left are named in a finding.
    """
    # It expires by itself, should this process be killed.
    if not cache.add(RUNNING, True, timeout=2 * LONGEST_SECONDS):
        return False
    began_at, began = now(), time.monotonic()
    try:
        with connection.execute_wrapper(in_time):
            found = checks.findings(until=began + LONGEST_SECONDS)
        kept = {
            "at": began_at.isoformat(),
            "seconds": time.monotonic() - began,
            "findings": [asdict(finding) for finding in found],
        }
        cache.set(RESULT, kept, timeout=KEPT_SECONDS)
    finally:
        cache.delete(RUNNING)
    return True


def in_time(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:
    """An execute wrapper: limits the time of each statement, within a transaction. Behind a transaction pooler a
    setting of the connection would outlive the request, and limit other programs.
    """
    if str(sql).startswith(OF_SAVEPOINTS):
        return execute(sql, params, many, context)
    with transaction.atomic(savepoint=False):
        with context["connection"].connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{STATEMENT_SECONDS}s"])
        return execute(sql, params, many, context)
