"""Locked sessions: the page without content, requests for grants, and locking."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import HttpResponseClientRefresh

from memadmin.accounts.grants import services as grants
from memadmin.accounts.grants.forms import GrantForm
from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.forms import SelectionForm
from sessions_app.models import SessionRecord
from sessions_app.services import sessions
from sessions_app.views.refusals import refused, way_back
from sessions_app.views.sessions import session_count


class LockedSessions:
    """Middleware that answers NeedsGrant of any view with the page on which a grant is requested."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: OperatorRequest, problem: Exception) -> HttpResponse | None:
        if not isinstance(problem, access.NeedsGrant):
            return None
        if request.htmx and not request.htmx.boosted:
            # A part of a page that is open although the grant is over: loaded again, the whole of it goes.
            return HttpResponseClientRefresh()
        return locked_page(request, problem.record, GrantForm(initial={"ticket": problem.record.ticket}), status=403)


def locked_page(
    request: OperatorRequest, record: SessionRecord, form: GrantForm, *, problem: str = "", status: int
) -> HttpResponse:
    context = {
        "record": record,
        "form": form,
        "problem": problem,
        "may_ask": request.user.has_perm(grants.REQUEST),
        "waiting": grants.waiting_for(request.user, record.pk),
    }
    response = render(request, "sessions/locked.html", context, status=status)
    response["Cache-Control"] = "no-store, private"
    return response


@operator_page(grants.REQUEST, methods="GET, POST")
@recently_authenticated(doing="request access")
def ask(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Requests a grant for one session; an invalid form keeps the input."""
    record = access.record_for(request.user, record_id)
    if request.method != "POST":
        return locked_page(request, record, GrantForm(initial={"ticket": record.ticket}), status=200)
    form = GrantForm(request.POST)
    if not form.is_valid():
        return locked_page(request, record, form, status=422)
    try:
        grant = grants.request_grant(by=request.user, record_ids=[record.pk], **form.cleaned_data)
    except grants.GrantError as refusal:
        return locked_page(request, record, form, problem=str(refusal), status=422)
    if grant.opened_at:
        return redirect(record)
    messages.success(request, "Access requested. You can read the session once an approver has approved the request.")
    return redirect(grant)


@operator_page("sessions_app.mark_sensitive", methods="POST")
def lock(request: OperatorRequest) -> HttpResponse:
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    count = sessions.mark_sensitive(form.cleaned_data["session"], by=request.user)
    messages.success(request, f"{session_count(count)} locked; reading them now needs a grant.")
    return redirect(way_back(request))
