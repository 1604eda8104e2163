"""The list of requests, and the form of a new one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.erasure import services
from memadmin.erasure.approving import is_about
from memadmin.erasure.forms import NewRequestForm, RequestFilters
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.view_models import views_of
from memadmin.home.saved_views import has_saved_views
from memadmin.web.addresses import uuid_in
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.models import Subject

REQUESTS = ListPage("erasure/requests.html", salt="requests")
CLOSED_BELOW = 20
"""Closed requests below the last open ones."""


@operator_page(VIEW)
@has_saved_views("erasure:requests", VIEW, lambda query, _: RequestFilters(query))
def request_list(request: OperatorRequest) -> HttpResponse:
    """Open requests by due date and, below the last of them, the newest closed ones."""
    filters = RequestFilters(request.GET)
    page = REQUESTS.page(request, filters.apply(request.user).with_names())
    is_end = not page.older and not page.problem
    closed = list(filters.closed().with_names()[: CLOSED_BELOW + 1]) if is_end else []
    context = {
        "filters": filters,
        "views": views_of([*page.rows, *closed[:CLOSED_BELOW]], request.user),
        "has_more_closed": len(closed) > CLOSED_BELOW,
    }
    return REQUESTS.render(request, context, page, status=400 if filters.problems else 200)


@operator_page(HANDLE, VIEW, methods="GET, POST")
def new(request: OperatorRequest) -> HttpResponse:
    """The form of a new request, filled for the subject in the address."""
    if request.method != "POST":
        return render(request, "erasure/new.html", {"form": NewRequestForm(initial=chosen(request))})
    form = NewRequestForm(request.POST)
    if not form.is_valid():
        return render(request, "erasure/new.html", {"form": form}, status=422)
    values = form.cleaned_data
    case, is_new = services.open_request(
        SubjectRequest.Kind(values["kind"]),
        values["subject"],
        by=request.user,
        channel=SubjectRequest.Channel(values["channel"]),
        received_on=values["received_on"],
        ground=values["ground"],
        known_as=values["known_as"],
        note=values["note"],
    )
    if values["subject"].merged_into_id is not None:
        messages.info(
            request, "This ID belongs to a subject that was merged. The request is about the remaining subject."
        )
    if is_about(case, request.user):
        messages.warning(request, f"{case} is about yourself. Another person has to handle it.")
    elif is_new:
        messages.success(request, f"{case} was opened. Next, check the identity.")
    else:
        messages.info(request, f"There is an open request of this kind already. The new one joined {case}.")
    return redirect(case)


def chosen(request: OperatorRequest) -> dict[str, str]:
    """First values of the form, by the subject that its page links with."""
    subject_id = uuid_in(request.GET.get("subject", ""))
    subject = Subject.objects.filter(pk=subject_id).prefetch_related("aliases").first() if subject_id else None
    first = subject.aliases.first() if subject else None
    return {"subject_kind": first.kind, "key": first.key} if first else {}
