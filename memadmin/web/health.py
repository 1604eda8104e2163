"""Health checks for load balancers: liveness of the process, and readiness to serve pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from django.db import Error, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from memadmin.web import job_queue
from memadmin.web.request_ids import PROBE_PATHS


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


_checks: list[Callable[[], Sequence[str]]] = []


def also_check(check: Callable[[], Sequence[str]]) -> None:
    """Adds a check of an upper app, run when the database responds and is migrated: it returns reasons as sentences."""
    if check not in _checks:
        _checks.append(check)


def reasons_not_to_serve() -> list[str]:
    """Reasons as sentences; empty when the database responds, has every migration of this version, and upper apps
    agree. Three queries.
    """
    try:
        applied = MigrationRecorder(connection).applied_migrations()
    except Error:
        return ["The database is not responding."]
    missing = [f"{app}.{name}" for app, name in last_migrations() if (app, name) not in applied]
    if missing:
        return [f"Migrations are missing ({', '.join(sorted(missing))}): run `memadmin migrate`."]
    try:
        return [reason for check in _checks for reason in check()]
    except Error:
        return ["The database is not responding."]


@cache
def last_migrations() -> frozenset[tuple[str, str]]:
    """The newest migration of each app of this version; read from disk once."""
    return frozenset(MigrationLoader(None).graph.leaf_nodes())
