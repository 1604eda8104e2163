"""Ids of requests, and the names of their pages, for log lines, error pages and metrics."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix
from opentelemetry.trace import Span, SpanKind

from memadmin import tracing
from memadmin.log_context import LogContext, request_id_of, within

logger = logging.getLogger("memadmin.requests")

FAULTS = 500
"""Status codes from here on are faults of the server; refusals are below."""

PROBE_PATHS = ("/healthz", "/readyz")
"""Health checks, which are answered before URL patterns are looked at: `memadmin.web.health`."""


def identify_requests(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Middleware: gives each request a random id, for log lines, error pages and the header `X-Request-ID`.

    An id that the client sends is not taken: it could be a text. At the level INFO each request is a line.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        request.request_id = request_id = request_id_of(secrets.randbits(63))  # type: ignore[attr-defined]
        with within(LogContext(request_id)), request_span(request, request_id) as span:
            began = time.monotonic()
            response = get_response(request)
            name_span(span, request, response.status_code)
            response["X-Request-ID"] = request_id
            if logger.isEnabledFor(logging.INFO):
                page, milliseconds = page_of(request), round((time.monotonic() - began) * 1_000)
                logger.info(
                    "%s %s in %s ms",
                    page,
                    response.status_code,
                    milliseconds,
                    extra={"page": page, "status_code": response.status_code, "milliseconds": milliseconds},
                )
            return response

    return answer


def request_span(request: HttpRequest, request_id: str) -> AbstractContextManager[Span]:
    """The trace's span of this request. It continues the trace of a proxy, if memadmin is said to be behind one."""
    return tracing.span(
        "request",
        {"http.request.method": method_of(request), "memadmin.request_id": request_id},
        kind=SpanKind.SERVER,
        parent=request.headers if settings.IS_BEHIND_PROXY else None,
    )


def name_span(span: Span, request: HttpRequest, status: int) -> None:
    """Completes the span when the page and the status are known."""
    page = page_of(request)
    span.update_name(f"{method_of(request)} {page}")
    span.set_attribute("memadmin.page", page)
    span.set_attribute("http.response.status_code", status)
    if status >= FAULTS:
        tracing.fail(span, str(status))


METHODS = frozenset({"GET", "HEAD", "POST"})
"""Others are one: a client can invent as many as it likes."""


def method_of(request: HttpRequest) -> str:
    return request.method if request.method in METHODS else "other"


def page_of(request: HttpRequest) -> str:
    """The name of the page's URL pattern: "sessions:detail"; "static" for a file, "unknown" for any other address."""
    if request.resolver_match is not None:
        return request.resolver_match.view_name
    if request.path_info in PROBE_PATHS:
        return request.path_info.removeprefix("/")
    is_file = request.path.startswith(get_script_prefix() + settings.STATIC_URL.lstrip("/"))
    return "static" if is_file else "unknown"
