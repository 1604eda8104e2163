"""Addresses of copies, with a page for their request."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import include, path

from memadmin import urls
from memadmin.erasure.access_copy.panel import access_context
from memadmin.erasure.access_copy.urls import urlpatterns as of_copies
from memadmin.erasure.models import SubjectRequest
from memadmin.urls import handler400, handler403, handler404, handler500

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]


def case_page(request: HttpRequest, case_id: object) -> HttpResponse:
    case = get_object_or_404(SubjectRequest, id=case_id)
    return render(request, "erasure/_access.html", {"case": case, **access_context(case, request.user)})  # type: ignore[arg-type]


of_requests = [path("<uuid:case_id>/", case_page, name="request"), *of_copies]

urlpatterns = [path("requests/", include((of_requests, "erasure"))), *urls.urlpatterns]
