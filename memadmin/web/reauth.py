"""`@recently_authenticated`: re-authentication before actions that cannot be undone.

How somebody shows that, and how they are asked, is known further up: `memadmin.accounts.reauth_views` says it here.
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
    """Registers what looks for a proof of at most 5 minutes: None where there is one, else the question.

    It is told what for, and whether that is a file.
    """
    _askers.append(asker)
    return asker


def recently_authenticated(*, doing: str, reading: bool = False, file: bool = False) -> Callable[[View], View]:
    """Lets a view run only for somebody who showed who they are in the last 5 minutes, and asks everybody else.

    `doing` says what for, as a verb and its object: "change roles". Only what changes something asks, unless it is
    `reading` that does, or the address gives a `file`: then the question leads back to the page of its link.
    A file that is sent cannot be kept for the second time.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_free = request.method in READING and not (reading or file)
            if is_free or not request.user.is_authenticated:
                return view(request, *args, **kwargs)
            # Without anybody who asks nothing is let through.
            (asker,) = _askers
            return asker(request, doing, file) or view(request, *args, **kwargs)

        return cast(View, asking)

    return decorate
