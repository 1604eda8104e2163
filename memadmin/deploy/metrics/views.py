"""The address that Prometheus scrapes."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from memadmin.deploy.metrics.database import DatabaseMetrics
from memadmin.deploy.metrics.folder import VARIABLE
from memadmin.deploy.metrics.requests import OF_PROCESS


@require_safe
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics in Prometheus' text format, for requests with the bearer token; 404 if the settings have none."""
    if not settings.METRICS_TOKEN:
        raise Http404
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not constant_time_compare(token.strip(), settings.METRICS_TOKEN):
        refusal = HttpResponse("A bearer token is required.\n", status=401, content_type="text/plain")
        refusal["WWW-Authenticate"] = "Bearer"
        return refusal
    return HttpResponse(metrics_text(), content_type=CONTENT_TYPE_LATEST)


def metrics_text() -> bytes:
    """All metrics: sums of the processes of this web server, and figures from the database."""
    if folder := os.environ.get(VARIABLE):
        forget_state_of_dead(Path(folder))
        of_processes = CollectorRegistry()
        MultiProcessCollector(of_processes, folder)  # type: ignore[no-untyped-call]
    else:
        of_processes = OF_PROCESS
    of_database = CollectorRegistry()
    of_database.register(DatabaseMetrics())
    return generate_latest(of_processes) + generate_latest(of_database)


def forget_state_of_dead(folder: Path) -> None:
    """Removes the gauges of processes that ended: their requests and connections are gone. Their counts stay."""
    for path in folder.glob("gauge_live*.db"):
        pid = int(path.stem.rpartition("_")[2])
        if not psutil.pid_exists(pid):
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
