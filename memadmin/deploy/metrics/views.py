"""The address that Prometheus scrapes."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from memadmin.deploy.counts.processes import counts_of_all
from memadmin.deploy.metrics.database import DatabaseMetrics
from memadmin.web.metrics_port import is_allowed


@require_safe
@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics in Prometheus' text format, for requests with the bearer token; 404 if the settings have none."""
    if not settings.METRICS_TOKEN:
        raise Http404
    if not is_allowed(request.headers.get("Authorization", ""), settings.METRICS_TOKEN):
        refusal = HttpResponse("A bearer token is required.\n", status=401, content_type="text/plain")
        refusal["WWW-Authenticate"] = "Bearer"
        return refusal
    return HttpResponse(metrics_text(), content_type=CONTENT_TYPE_LATEST)


def metrics_text() -> bytes:
    """All metrics: sums of the processes of this web server, and figures from the database."""
    of_database = CollectorRegistry()
    of_database.register(DatabaseMetrics())
    return generate_latest(counts_of_all()) + generate_latest(of_database)
