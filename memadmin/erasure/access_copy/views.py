"""Actions on the copy of a request, and its download. There is no address for the person: staff hands the file over."""

from __future__ import annotations

from uuid import UUID

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
from memadmin.erasure.views.performing import Performer
from memadmin.runs.services import ChunkUnderWay, InvalidRunState
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

PROBLEMS = (RequestError, InvalidRunState, ChunkUnderWay, CopyKeyUnreadable)


def refused(
    request: OperatorRequest,
    case: SubjectRequest,
    *,
    problem: object = "A note of at most 2,000 characters is needed.",
    status: int = 409,
    sent: object = None,
) -> HttpResponse:
    """Page that says why nothing was changed; by default, the error of the only form."""
    return render(request, "erasure/copy_refused.html", {"case": case, "problem": problem}, status=status)


perform = Performer(access_case_for, refused, problems=PROBLEMS)


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
    form = CopyNoteForm(request.POST)
    return perform(
        request,
        access_id,
        lambda case: services.leave_out_stores(case, note=form.cleaned_data["note"], by=request.user),
        "The copy is built without these stores, and names them.",
        note_form=form,
    )


@operator_page(HANDLE, methods="POST")
@recently_authenticated(doing="download a copy of a person's data")
def link(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    """Makes the one-time link and opens it."""
    case = access_case_for(request.user, access_id)
    try:
        token = services.make_link(case, by=request.user)
    except PROBLEMS as problem:
        return refused(request, case, problem=problem)
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
        return refused(request, case, problem=problem, status=410)
    except PROBLEMS as problem:
        return refused(request, case, problem=problem)
    response = StreamingHttpResponse(content, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{case}.zip"'
    response["Content-Length"] = str(copy.size)
    response["X-Content-Type-Options"] = "nosniff"
    return response


@operator_page(HANDLE, methods="POST")
def hand_over(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    form = CopyNoteForm(request.POST)
    return perform(
        request,
        access_id,
        lambda case: services.hand_over(case, note=form.cleaned_data["note"], by=request.user),
        "The request is answered.",
        note_form=form,
    )
