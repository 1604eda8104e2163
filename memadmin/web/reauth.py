"""`@recently_authenticated`: re-authentication before actions that cannot be undone.

The re-authentication itself is in an upper package: `memadmin.accounts.reauth_views` registers it here. It comes after
every check of the input, by a rehearsal of the action.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeAlias, TypeVar, cast

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from memadmin.rehearsal import Rehearsal

READING = ("GET", "HEAD", "OPTIONS")

View = TypeVar("View", bound=Callable[..., HttpResponseBase])
Rehearse: TypeAlias = Callable[[], HttpResponseBase | None]
Asker: TypeAlias = Callable[[HttpRequest, str, bool, Rehearse | None], HttpResponseBase | None]

_askers: list[Asker] = []


def asks_for_proof(asker: Asker) -> Asker:
    """Registers the check for a sign-in of the last 5 minutes: None if there is one, else the page that asks.

    Its arguments are the request, the action, whether the action returns a file, and what returns the response of the
    action to invalid input, if that comes before the question.
    """
    _askers.append(asker)
    return asker


def recently_authenticated(
    *, doing: str | Callable[[HttpRequest], str], reading: bool = False, file: bool = False
) -> Callable[[View], View]:
    """Runs a view only after a sign-in or re-authentication in the last 5 minutes; else asks for one.

    `doing` is the action, as a verb and its object: "change roles"; a function of the request for an address with
    several actions. Only requests that change something are checked, after a rehearsal that found no fault in the
    input, unless `reading` is set, or the address returns a `file`: then the question comes first, and the user returns
    to the page of the link. An uploaded file cannot be kept while the question is asked.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def asking(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            is_free = request.method in READING and not (reading or file)
            if is_free or not request.user.is_authenticated:
                return view(request, *args, **kwargs)
            # Without a registered check no request passes.
            (asker,) = _askers
            act = partial(view, request, *args, **kwargs)
            rehearse = None if reading or file else partial(Rehearsal().refusal_by, act)
            return asker(request, doing(request) if callable(doing) else doing, file, rehearse) or act()

        return cast(View, asking)

    return decorate
