"""`@recently_authenticated`: re-authentication before actions that cannot be undone.

The re-authentication itself is in an upper package: `memadmin.accounts.reauth_views` registers it here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase

READING = ("GET", "HEAD", "OPTIONS")

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
Asker: TypeAlias = Callable[[HttpRequest, str, bool], HttpResponseBase | None]

_askers: list[Asker] = []


def asks_for_proof(asker: Asker) -> Asker:
    """Registers the check for a sign-in of the last 5 minutes: None if there is one, else the page that asks.

    Its arguments are the request, the action, and whether the action returns a file.
    """
    _askers.append(asker)
    return asker


def recently_authenticated(
    *, doing: str | Callable[[HttpRequest], str], reading: bool = False, file: bool = False
) -> Callable[[View], View]:
    """Runs a view only after a sign-in or re-authentication in the last 5 minutes; else asks for one.

    `doing` is the action, as a verb and its object: "change roles"; a function of the request for an address with
    several actions. Only requests that change something are checked, unless `reading` is set, or the address returns a
    `file`: then the user returns to the page of the link. An uploaded file cannot be kept for the repeated request.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_free = request.method in READING and not (reading or file)
            if is_free or not request.user.is_authenticated:
                return view(request, *args, **kwargs)
            # Without a registered check no request passes.
            (asker,) = _askers
            return asker(request, doing(request) if callable(doing) else doing, file) or view(request, *args, **kwargs)

        return cast(View, asking)

    return decorate
