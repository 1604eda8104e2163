"""Health checks for load balancers: liveness of the process, and readiness to serve pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import psycopg
from django.db import Error, InterfaceError, OperationalError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from psycopg.errors import InsufficientPrivilege

from memadmin.web import job_queue
from memadmin.web.request_ids import PROBE_PATHS

NAMED_MIGRATIONS = 3
"""Number of missing migrations that a sentence names."""


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """200 whenever the process responds; a failing database is no reason to restart it."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when pages can be served, else 503 with the reasons: sentences without details, since access is public.

    `degraded` is for monitoring. It does not change the status: no other web server would do the jobs.
    """
    problems = reasons_not_to_serve()
    degraded = [] if problems else reasons_for_alarm()
    answer = {"ready": not problems, "problems": problems, "degraded": degraded}
    return JsonResponse(answer, status=503 if problems else 200)


PROBES: dict[str, Callable[[HttpRequest], HttpResponse]] = dict(zip(PROBE_PATHS, (healthz, readyz), strict=True))


def answer_probes(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Middleware: answers the health checks before the Host is checked, since probes call a server by its address."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        probe = PROBES.get(request.path_info)
        return probe(request) if probe else get_response(request)

    return answer


def reasons_for_alarm() -> list[str]:
    """Problems that pages can be served with, as sentences without details. At most three queries."""
    try:
        has_problems = job_queue.has_problems()
    except Error:
        return ["The state of the background jobs is unknown. Run `memadmin check_deploy`."]
    return ["Background jobs are stuck, overdue or failed. Run `memadmin check_deploy`."] if has_problems else []


_checks: list[tuple[str, Callable[[], Sequence[str]]]] = []


def also_check(check: Callable[[], Sequence[str]], *, process: str = "") -> None:
    """Adds a check of an upper app, run when the database responds and is migrated: it returns reasons as sentences.

    With `process`, "web" or "worker", it is about such a process alone.
    """
    _checks.append((process, check))


def reasons_not_to_serve(process: str = "web") -> list[str]:
    """Reasons as sentences; empty when the database responds, has every migration of this version, and upper apps
    agree. Five queries.
    """
    try:
        if missing := missing_migrations():
            return [missing]
        return [reason for only, check in _checks if only in ("", process) for reason in check()]
    except Error:
        return ["The database is not responding."]


def missing_migrations() -> str:
    """A sentence that names migrations of this version that the database lacks; empty if it has all. Two queries."""
    applied = MigrationRecorder(connection).applied_migrations()
    missing = sorted(f"{app}.{name}" for app, name in last_migrations() if (app, name) not in applied)
    if not missing:
        return ""
    names = ", ".join(missing[:NAMED_MIGRATIONS])
    others = f" and {len(missing) - NAMED_MIGRATIONS} more" if len(missing) > NAMED_MIGRATIONS else ""
    return f"Migrations are missing ({names}{others}): run `memadmin migrate`."


def unusable_because(problem: BaseException | None) -> str:
    """Why the database cannot be used, as one sentence, if `problem` or its cause comes from that; otherwise empty."""
    while problem and not isinstance(problem, Error | psycopg.Error):
        problem = problem.__cause__
    first_line = str(problem).strip().partition("\n")[0]
    if isinstance(problem, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        # PostgreSQL adds hints on lines of their own.
        return first_line
    if any(isinstance(each, InsufficientPrivilege) for each in (problem, problem and problem.__cause__)):
        return f"{first_line}, as the role in DATABASE_URL. Which role runs which command is in docs/database-roles.md."
    try:
        return missing_migrations() if problem else ""
    except Error:
        return ""


@cache
def last_migrations() -> frozenset[tuple[str, str]]:
    """The newest migration of each app of this version; read from disk once."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())
