"""Error pages. None of them needs a database or a session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import Q
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import add_never_cache_headers
from django.utils.text import get_text_list

from memadmin.web import navigation

RETRY_AFTER_SECONDS = 10

AWAY_STATES = ("08", "53", "57P")
"""Prefixes of SQLSTATEs with which the server refuses or ends a connection.

Other operational errors concern one statement: cancelled, deadlock, lock timeout.
"""


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "400.html", status=400)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The 403 page. For pages in the sidebar, whose existence is no secret, it lists the roles with access."""
    context: dict[str, object] = {"layout": layout_for(request)}
    if is_signed_in(request):
        context["own_roles"] = in_words(request.user.groups.all())
        place = navigation.place_at(request.path)
        if place and not navigation.may_see(request.user, place):
            context |= {"place": place, "roles": in_words(roles_with(place.permissions))}
    return render(request, "403.html", context, status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "403_csrf.html", status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render(request, "404.html", {"layout": layout_for(request)}, status=404)


def explain_refused_methods(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Any:
    """Middleware: a page for 405 responses, which Django leaves empty.

    Users see it: a sign-in after sending a form redirects to the form's address, without the form.
    """

    def answer(request: HttpRequest) -> HttpResponseBase:
        refused = get_response(request)
        if not isinstance(refused, HttpResponseNotAllowed) or refused.content:
            return refused
        page = render(request, "405.html", {"layout": layout_for(request)}, status=405)
        page["Allow"] = refused["Allow"]
        add_never_cache_headers(page)
        return page

    return answer


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for unexpected exceptions, and for an unavailable database or a part of one.

    A middleware would handle only exceptions of views; this also handles those of the login and the session.
    """
    error = sys.exception()
    if not is_database_away(error):
        return render(request, "500.html", status=500)
    if is_part_away(error):
        response = render(request, "503_part.html", {"layout": layout_for(request)}, status=503)
        # Of a request of htmx nothing is shown but a notice: the one with this id in base.html.
        response["X-Notice"] = "part-away"
    else:
        response = render(request, "503.html", status=503)
    response["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def is_database_away(error: BaseException | None) -> bool:
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", None)
    return state is None or state.startswith(AWAY_STATES)


def is_part_away(error: BaseException | None) -> bool:
    """Whether the database responds, but one of the servers over which it is distributed does not.

    Then a statement fails as if the connection were lost, on a connection that works. A pooler that has no server says
    the same, but ends the connection.
    """
    state = getattr(getattr(error, "__cause__", None), "sqlstate", None) or ""
    return isinstance(error, OperationalError) and state.startswith("08") and connection.is_usable()


def layout_for(request: HttpRequest) -> str:
    return "base.html" if is_signed_in(request) else "bare.html"


def is_signed_in(request: HttpRequest) -> bool:
    """Whether the page can show its layout; False if the database is unavailable or a middleware failed before."""
    try:
        return hasattr(request, "user") and request.user.is_authenticated
    except DatabaseError:
        return False


def roles_with(permissions: Iterable[str]) -> Iterable[Group]:
    """The roles that have any of these permissions."""
    wanted = Q()
    for permission in permissions:
        app_label, codename = permission.split(".")
        wanted |= Q(permissions__content_type__app_label=app_label, permissions__codename=codename)
    return Group.objects.filter(wanted).distinct().order_by("pk")


def in_words(roles: Iterable[Group]) -> str:
    return get_text_list([role.name for role in roles], "and")
