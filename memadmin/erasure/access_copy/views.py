"""Actions on the copy of a request, and its download. There is no address for the person: staff hands the file over."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from memadmin.erasure.access import access_case_for
from memadmin.erasure.access_copy import services
from memadmin.erasure.access_copy.forms import CopyNoteForm
from memadmin.erasure.access_copy.keys import CopyKeyUnreadable
from memadmin.erasure.access_copy.panel import HANDLE
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.services import RequestError
from memadmin.runs.services import ChunkUnderWay, InvalidRunState
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

PROBLEMS = (RequestError, InvalidRunState, ChunkUnderWay, CopyKeyUnreadable)


def refused(request: OperatorRequest, case: SubjectRequest, problem: object, status: int = 409) -> HttpResponse:
    return render(request, "erasure/copy_refused.html", {"case": case, "problem": problem}, status=status)


def perform(
    request: OperatorRequest, access_id: UUID, take: Callable[[SubjectRequest], object], done: str
) -> HttpResponse:
    """Takes one action and returns to the request, or shows why nothing was changed."""
    case = access_case_for(request.user, access_id)
    try:
        take(case)
    except PROBLEMS as problem:
        return refused(request, case, problem)
    messages.success(request, done)
    return redirect(case)


def perform_with_note(
    request: OperatorRequest, access_id: UUID, take: Callable[[SubjectRequest, str], object], done: str
) -> HttpResponse:
    form = CopyNoteForm(request.POST)
    if not form.is_valid():
        return refused(
            request,
            access_case_for(request.user, access_id),
            "A note of at most 2,000 characters is needed.",
            status=422,
        )
    return perform(request, access_id, lambda case: take(case, form.cleaned_data["note"]), done)


@operator_page(HANDLE, methods="POST")
@recently_authenticated(doing="build a copy of a person's data")
def build(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    return perform(
        request,
        access_id,
        lambda case: services.build_access_copy(case, by=request.user),
        "The copy is being built.",
    )


@operator_page(HANDLE, methods="POST")
def leave_out(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    return perform_with_note(
        request,
        access_id,
        lambda case, note: services.leave_out_stores(case, note=note, by=request.user),
        "The copy is built without these stores, and names them.",
    )


@operator_page(HANDLE, methods="POST")
@recently_authenticated(doing="download a copy of a person's data")
def link(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    """Makes the one-time link and opens it."""
    case = access_case_for(request.user, access_id)
    try:
        token = services.make_link(case, by=request.user)
    except PROBLEMS as problem:
        return refused(request, case, problem)
    return redirect("erasure:copy-fetch", case.id, token)


@operator_page(HANDLE)
@recently_authenticated(doing="download a copy of a person's data", file=True)
def fetch(request: OperatorRequest, access_id: UUID, token: str) -> HttpResponseBase:
    """The ZIP file, once for each link."""
    case = access_case_for(request.user, access_id)
    if request.method == "HEAD":
        # What only looks must not use the link up.
        return HttpResponse()
    try:
        copy, content = services.fetch(case, token, by=request.user)
    except (services.LinkUsed, services.NoCopy) as problem:
        return refused(request, case, problem, status=410)
    except PROBLEMS as problem:
        return refused(request, case, problem)
    response = StreamingHttpResponse(content, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{case}.zip"'
    response["Content-Length"] = str(copy.size)
    response["X-Content-Type-Options"] = "nosniff"
    return response


@operator_page(HANDLE, methods="POST")
def hand_over(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    return perform_with_note(
        request,
        access_id,
        lambda case, note: services.hand_over(case, note=note, by=request.user),
        "The request is answered.",
    )
