"""No page of a database that is older than an erasure."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render

from memadmin.erasure.suppression.entering import reason_not_to_serve

OPEN = ("/accounts/", "/metrics", "/static/", "/policy-report/")
"""Addresses without content."""


class RefuseRestoredDatabase:
    """Answers 503 with the reason while erasures of the ledger have to be repeated."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path.startswith(OPEN) and (reason := reason_not_to_serve()):
            return render(request, "erasure/restored.html", {"reason": reason}, status=503)
        return self.get_response(request)
