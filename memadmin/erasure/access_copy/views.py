"""Actions on the copy of a request, and its download. There is no address for the person: staff hands the file over."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure.access import access_case_for
from memadmin.erasure.access_copy import services
from memadmin.erasure.forms import HandOverForm, NoteForm
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.services import RequestError
from memadmin.erasure.views.cases import case_page
from memadmin.erasure.views.run_actions import REFUSED
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

perform = Performer(access_case_for, case_page, REFUSED)


@operator_page(HANDLE, VIEW, methods="POST")
@recently_authenticated(doing="build a copy of a person's data")
def build(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    return perform(request, access_id, services.build_access_copy, "The copy is being built.")


@operator_page(HANDLE, VIEW, methods="POST")
def leave_out(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    form = NoteForm(request.POST, auto_id="leave-out-%s")
    done = "The copy is built without these stores, and names them."
    return perform(request, access_id, services.leave_out_stores, done, leave_out_form=form)


@operator_page(HANDLE, VIEW, methods="POST")
@recently_authenticated(doing="download a copy of a person's data")
def link(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    """Makes the one-time link and opens it."""
    case = access_case_for(request.user, access_id)
    try:
        token = services.make_link(case, by=request.user)
    except RequestError as problem:
        return case_page(request, case, problem=str(problem), status=409)
    return redirect("erasure:copy-fetch", case.id, token)


@operator_page(HANDLE, VIEW)
@recently_authenticated(doing="download a copy of a person's data", file=True)
def fetch(request: OperatorRequest, access_id: UUID, token: str) -> HttpResponseBase:
    """The ZIP file, once for each link."""
    case = access_case_for(request.user, access_id)
    if request.method == "HEAD":
        # What only looks must not use the link up.
        return HttpResponse()
    try:
        copy, content = services.fetch(case, token, by=request.user)
    except (RequestError, SecretKeyChanged) as problem:
        status = 410 if isinstance(problem, services.LinkUsed | services.NoCopy) else 409
        return case_page(request, case, problem=str(problem), status=status)
    response = StreamingHttpResponse(content, content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{case}.zip"'
    response["Content-Length"] = str(copy.size)
    response["X-Content-Type-Options"] = "nosniff"
    return response


@operator_page(HANDLE, VIEW, methods="POST")
def hand_over(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    form = HandOverForm(request.POST, auto_id="hand-over-%s")
    return perform(request, access_id, services.hand_over, "The request is answered.", hand_over_form=form)
