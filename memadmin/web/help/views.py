"""Pages of the help: `/help/` and one for each area. Everybody who is signed in may read them."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from memadmin.web import navigation
from memadmin.web.help.commands import purpose_of
from memadmin.web.help.rights import rights_of
from memadmin.web.help.texts import areas, glossary
from memadmin.web.help.tours import tours_for
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest


@operator_page()
def overview(request: HttpRequest) -> HttpResponse:
    return render(request, "help/overview.html", {"areas": areas().values(), "groups": glossary()})


@operator_page()
def tour(request: OperatorRequest) -> HttpResponse:
    shown = tours_for(request.user)
    return render(request, "help/tour.html", {"tours": shown, "own": sum(is_own for _, is_own, _ in shown)})


@operator_page()
def area(request: HttpRequest, key: str) -> HttpResponse:
    try:
        shown = areas()[key]
    except KeyError:
        raise Http404 from None
    place = navigation.place_at(shown.paths[0])
    context = {
        "area": shown,
        "areas": areas().values(),
        "rights": rights_of(shown.permissions),
        "commands": [(name, purpose_of(name)) for name in shown.commands],
        "may_open": place is None or navigation.may_see(request.user, place),
    }
    return render(request, "help/area.html", context)
