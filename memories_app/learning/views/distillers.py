"""List of distillation runs, newest first, with their cost."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse

from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.learning.costs import costs_of_a_week, shown_readings
from memories_app.models import Distillation

READINGS = ListPage("memories/distillers.html", salt="readings", fragment="readings")


@operator_page("memories_app.read_memory")
def distillers(request: OperatorRequest) -> HttpResponse:
    readings = Distillation.objects.order_by("-began_at", "-pk")
    page = READINGS.page(request, readings)
    context = {"distiller": settings.DISTILLER, "readings": shown_readings(page.rows), "costs": costs_of_a_week()}
    return READINGS.render(request, context, page)
