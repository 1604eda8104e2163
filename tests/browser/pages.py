"""Pages that only browser tests have: the shell around rows, runs and forms to try the keys on."""

from __future__ import annotations

from django.contrib import messages
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import include, path

from memadmin import urls
from memadmin.web.fragments import render_page_or_fragment

handler400, handler403, handler404, handler500 = urls.handler400, urls.handler403, urls.handler404, urls.handler500


def rows(request: HttpRequest) -> HttpResponse:
    return render(request, "rows.html", {"numbers": range(1, 4), "runs": range(1, 4)})


def row(request: HttpRequest, number: int) -> HttpResponse:
    return render(request, "tea.html", {"kind": number})


def pour(request: HttpRequest) -> HttpResponse:
    """Answers as a lost race does: 409, with the part that says so."""
    messages.success(request, "<Poured>")
    return render_page_or_fragment(request, "tea.html", {"kind": "<second>"}, fragment="cup", status=409)


def break_cup(request: HttpRequest) -> HttpResponse:
    return HttpResponse("<p>broken cup</p>", status=500)


def fail(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


def lose_the_database(request: HttpRequest) -> HttpResponse:
    raise OperationalError


def inject(request: HttpRequest) -> HttpResponse:
    """What must not work in a part, should hostile text ever come through unescaped."""
    return HttpResponse(
        '<p id="injected" style="color: red" onclick="alert(1)">injected</p><script>document.title = "owned"</script>'
        '<img src="https://elsewhere.example/x.png" alt="">'
    )


def search(request: HttpRequest) -> HttpResponse:
    return render(request, "tea.html", {"kind": request.POST["q"]})


session_pages = (
    [
        path("", rows, name="overview"),
        path("sessions/", rows, name="list"),
        path("subjects/", rows, name="subjects"),
        path("redactions/", rows, name="redactions"),
        path("subjects/suggest/", rows, name="subject-suggest"),
        path("stores/", rows, name="stores"),
        path("search/", search, name="search"),
    ],
    "sessions",
)
audit_pages = ([path("", rows, name="list")], "audit")
memory_pages = ([path("", rows, name="list"), path("recall/", rows, name="recall")], "memories")
review_pages = ([path("", rows, name="list")], "reviews")
run_pages = ([path("", rows, name="list")], "runs")
urlpatterns = [
    path("", include(session_pages)),
    path("audit/", include(audit_pages)),
    path("memories/", include(memory_pages)),
    path("reviews/", include(review_pages)),
    path("runs/", include(run_pages)),
    path("rows/<int:number>/", row, name="row"),
    path("pour/", pour, name="pour"),
    path("break/", break_cup, name="break"),
    path("inject/", inject, name="inject"),
    path("failed/", fail),
    path("away/", lose_the_database),
    # Whatever the shell links to; the pages above hide those of the same names.
    *urls.urlpatterns,
]
