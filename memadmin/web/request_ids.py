"""Ids of requests, and the names of their pages, for log lines, error pages and metrics."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import get_script_prefix

from memadmin.log_context import LogContext, within

logger = logging.getLogger("memadmin.requests")

PROBE_PATHS = ("/healthz", "/readyz")
"""Health checks, which are answered before URL patterns are looked at: `memadmin.web.health`."""


def identify_requests(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Middleware: gives each request a random id, for log lines, error pages and the header `X-Request-ID`.

    An id that the client sends is not taken: it could be a text. At the level INFO each request is a line.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        request.request_id = request_id = secrets.token_hex(8)  # type: ignore[attr-defined]
        with within(LogContext(request_id)):
            began = time.monotonic()
            response = get_response(request)
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


def page_of(request: HttpRequest) -> str:
    """The name of the page's URL pattern: "sessions:detail"; "static" for a file, "unknown" for any other address."""
    if request.resolver_match is not None:
        return request.resolver_match.view_name
    if request.path_info in PROBE_PATHS:
        return request.path_info.removeprefix("/")
    is_file = request.path.startswith(get_script_prefix() + settings.STATIC_URL.lstrip("/"))
    return "static" if is_file else "unknown"
