"""What distillers read, newest first, and what that cost."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpResponse

from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor, page_by_key
from memadmin.web.requests import OperatorRequest
from memories_app.costs import costs_of_a_week, shown_readings
from memories_app.models import Distillation

PAGE_READINGS = 50


@operator_page("memories_app.read_memory")
def distillers(request: OperatorRequest) -> HttpResponse:
    readings = Distillation.objects.order_by("-began_at", "-pk")
    context: dict[str, object] = {"distiller": settings.DISTILLER}
    status = 200
    try:
        page = page_by_key(readings, cursor=request.GET.get("cursor", ""), size=PAGE_READINGS, salt="readings")
        context |= {"page": page, "readings": shown_readings(page.rows), "costs": costs_of_a_week()}
    except BadCursor as problem:
        context["bad_cursor"], status = problem, 400
    return render_page_or_fragment(request, "memories/distillers.html", context, fragment="readings", status=status)
