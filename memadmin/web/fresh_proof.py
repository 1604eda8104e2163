"""`@recently_authenticated`: what cannot be undone asks again who somebody is.

How somebody shows that, and how they are asked, is known further up: `memadmin.accounts.confirming` says it here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeAlias, TypeVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase

READING = ("GET", "HEAD", "OPTIONS")

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
Asker: TypeAlias = Callable[[HttpRequest, str], HttpResponseBase | None]

_askers: list[Asker] = []


def asks_for_proof(asker: Asker) -> Asker:
    """Registers what looks for a proof of at most 5 minutes: None where there is one, else the question."""
    _askers.append(asker)
    return asker


def recently_authenticated(*, doing: str, reading: bool = False) -> Callable[[View], View]:
    """Lets a view run only for somebody who showed who they are in the last 5 minutes, and asks everybody else.

    `doing` says what for, as a verb and its object: "change roles". Only what changes something asks, unless `reading`.
    A file cannot be kept for the second time.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_free = request.method in READING and not reading
            if is_free or not request.user.is_authenticated:
                return view(request, *args, **kwargs)
            # Without anybody who asks nothing is let through.
            (asker,) = _askers
            return asker(request, doing) or view(request, *args, **kwargs)

        return cast(View, asking)

    return decorate
