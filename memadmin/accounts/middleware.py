"""Middleware for requests of signed-in users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import SESSION_KEY, logout
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.timezone import now
from django_htmx.http import HttpResponseClientRedirect

from memadmin.accounts.reauth import has_second_factor, note_use, why_over
from memadmin.web.reauth import READING

ENDED = "session_ended"
"""Where the login finds why it is asked for."""

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def open_without_second_factor(view: View) -> View:
    """For the pages on which somebody sets one up, and for leaving."""
    view.open_without_second_factor = True  # type: ignore[attr-defined]
    return view


class SessionLimits:
    """Ends sessions that were unused or open for too long, and those of people who were switched off.

    A page that refreshes itself is no use of it: its requests say so (static/app.js), and keep nothing open. Whoever
    leaves that out keeps their own session open, as they could by clicking.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        # What is open to everybody may have to answer without a database.
        if getattr(view, "login_required", True) and SESSION_KEY in request.session:
            self.look_at(request)
        return None

    def look_at(self, request: HttpRequest) -> None:
        if not request.user.is_authenticated:
            request.session.flush()
        elif reason := why_over(request):
            logout(request)
            request.session[ENDED] = reason
        elif "X-Background" not in request.headers and note_use(request):
            UserSession.objects.filter(session_key=request.session.session_key).update(last_seen_at=now())


class SecondFactor:
    """Leads whoever signed in with less than two factors to the second one, before anything else answers.

    It asks what this session has used, not what the person owns: a password alone opens nothing, also in a session
    that is older than the factor. No query.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        if not settings.SECOND_FACTOR_REQUIRED or not request.user.is_authenticated:
            return None
        is_open = not getattr(view, "login_required", True) or getattr(view, "open_without_second_factor", False)
        if is_open or has_second_factor(request):
            return None
        return self.lead(request)

    def lead(self, request: HttpRequest) -> HttpResponse:
        address = reverse("accounts:second-factor")
        if request.htmx:  # type: ignore[attr-defined]
            return HttpResponseClientRedirect(address)
        if request.method in READING and request.accepts("text/html"):
            return redirect(address)
        if request.accepts("text/html"):
            return render(request, "accounts/lacks_second_factor.html", status=403)
        return JsonResponse({"error": "Set up a second factor first."}, status=403)
