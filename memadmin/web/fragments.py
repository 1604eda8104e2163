"""Choice between a whole page and a fragment of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.middleware import HtmxDetails


def render_page_or_fragment(
    request: HttpRequest, template: str, context: Mapping[str, Any], *, fragment: str, status: int = 200
) -> HttpResponse:
    """The partial `fragment` of `template` for htmx requests, else the whole page.

    A boosted link replaces the body and a restored page the document, so both get the whole page.
    """
    name = f"{template}#{fragment}" if wants_fragment(request) else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Boosted"])
    return response


def wants_fragment(request: HttpRequest) -> bool:
    """Whether a fragment is requested; for views whose whole page needs more queries."""
    htmx: HtmxDetails = request.htmx  # type: ignore[attr-defined]  # set by HtmxMiddleware
    return bool(htmx and not htmx.boosted and not htmx.history_restore_request)
