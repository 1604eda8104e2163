"""The bell of the top bar."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.home.notifications import mark_all_read, notifications_of
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest


@operator_page()
def notifications(request: OperatorRequest) -> HttpResponse:
    """The panel for htmx, or a page of its own."""
    template = "home/_notifications.html" if request.htmx else "home/notifications.html"
    return render(request, template, {"notifications": notifications_of(request.user)})


@operator_page(methods="POST")
def mark_read(request: OperatorRequest) -> HttpResponse:
    mark_all_read(request.user)
    return redirect("home:notifications")
