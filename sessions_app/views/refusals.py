"""Error pages of a refused action or a store that does not respond, and the return address of a form."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from sessions_app.models import SessionRecord
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.services.subjects import SubjectWasErased
from sessions_app.stores.base import StoreUnavailable


def refused(request: HttpRequest, *problems: str, status: int = 422, **context: Any) -> HttpResponse:
    """Page with the reasons why nothing was changed, as sentences, and the return address."""
    context |= {"problems": problems, "next": way_back(request)}
    return render(request, "sessions/refused.html", context, status=status)


def store_away(request: HttpRequest, record: SessionRecord, away: StoreUnavailable) -> HttpResponse:
    """Page of a session without its items (503), with the reason why its store does not respond."""
    return render(request, "sessions/timeline.html", {"record": record, "away": away}, status=503)


def way_back(request: HttpRequest, *, otherwise: str = "") -> str:
    """Return address of a submitted form, if it is an address of this console; `otherwise` or the session list, if
    not.
    """
    target = request.POST.get("next", "")
    is_ours = target.startswith("/") and url_has_allowed_host_and_scheme(target, allowed_hosts=None)
    return target if is_ours else otherwise or reverse("sessions:list")


def explains_kept_data(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator of a view whose change is refused where data must be kept, or stay erased: then it answers 409 with the
    reason.
    """

    @wraps(view)
    def explaining(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except (DeletionRefused, SubjectWasErased) as problem:
            return refused(request, str(problem), status=409)

    return explaining
