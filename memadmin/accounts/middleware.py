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

from memadmin.accounts import open_sessions
from memadmin.accounts.reauth import has_second_factor, note_use, why_over
from memadmin.web.reauth import READING

ENDED = "session_ended"
"""Session key with the reason for which the session ended, shown on the login page."""

View = TypeVar("View", bound=Callable[..., HttpResponseBase])


def open_without_second_factor(view: View) -> View:
    """Marks a view as open without a second factor: set-up pages, and sign-out."""
    view.open_without_second_factor = True  # type: ignore[attr-defined]
    return view


class SessionLimits:
    """Ends sessions that were unused or open for too long, and those of disabled users.

    Automatic refreshes do not count as use: their requests have a header (static/app.js). A user who removes it keeps
    only their own session open, as they could by clicking.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponseBase], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        # Public views may have to respond without a database.
        if getattr(view, "login_required", True) and SESSION_KEY in request.session:
            self.check_session(request)
        return None

    def check_session(self, request: HttpRequest) -> None:
        """Signs the user out when their session is over; otherwise notes its use."""
        if not request.user.is_authenticated:
            request.session.flush()
        elif reason := why_over(request):
            logout(request)
            request.session[ENDED] = reason
        elif "X-Background" not in request.headers and note_use(request):
            UserSession.objects.filter(session_key=open_sessions.key_of(request)).update(last_seen_at=now())


class SecondFactor:
    """Redirects users who signed in without a second factor to it, before any other view runs.

    It checks the factors used in this session, not those of the user: a password alone is not enough, also in a session
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
