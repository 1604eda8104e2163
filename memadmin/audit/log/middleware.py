"""Middleware of the log: the actor of a request, denied access, and the page for an unavailable log."""

from __future__ import annotations

import logging
from collections.abc import Callable
from uuid import UUID

from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memadmin.audit.audit_events import ACCESS_DENIED
from memadmin.audit.log import actors
from memadmin.audit.log.actors import Actor
from memadmin.audit.log.recording import AuditUnavailable, record_alone

logger = logging.getLogger(__name__)

DENIALS = {403: "forbidden", 404: "not_found"}


class AuditMiddleware:
    """Runs after authentication. Denied access is recorded here, the one place that all responses pass."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # A function: pages without events need no user look-up, and the request may be a sign-in.
        with actors.acting(lambda: whoever_asks(request)):
            response = self.get_response(request)
            if response.status_code in DENIALS and is_worth_recording(request):
                record_denial(request, DENIALS[response.status_code])
            return response

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, AuditUnavailable):
            return None
        logger.error(
            "Nothing is shown, because the audit log cannot be written: %s", type(exception.__cause__).__name__
        )
        return render(request, "audit/unavailable.html", status=503)


def whoever_asks(request: HttpRequest) -> Actor:
    return actors.person(request.user) if request.user.is_authenticated else actors.NOT_SIGNED_IN


def is_worth_recording(request: HttpRequest) -> bool:
    """Whether a signed-in person requested an existing page; unknown addresses are not recorded."""
    return request.resolver_match is not None and request.user.is_authenticated


def record_denial(request: HttpRequest, reason_code: str) -> None:
    asked_for = [value for value in request.resolver_match.kwargs.values() if isinstance(value, UUID)]  # type: ignore[union-attr]
    try:
        record_alone(ACCESS_DENIED, outcome="denied", reason_code=reason_code, shown=asked_for)
    except Error:
        # The response denies access anyway and contains no content.
        logger.exception("A denied attempt could not be recorded.")
