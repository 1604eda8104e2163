"""Actions on the copy of a request, and its download. There is no address for the person: staff hands the file over."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from memadmin.accounts.approvals.forms import ShownForm
from memadmin.accounts.approvals.services import NotAllowed
from memadmin.accounts.content_access import rules
from memadmin.accounts.grants.services import DECIDE
from memadmin.derived_keys import SecretKeyChanged
from memadmin.erasure.access import access_case_for
from memadmin.erasure.access_copy import services
from memadmin.erasure.forms import HandOverForm, NoteForm
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.services import OwnRequest, RequestError
from memadmin.erasure.views.cases import case_page
from memadmin.erasure.views.run_actions import REFUSED
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

perform = Performer(access_case_for, case_page, REFUSED, forbidden=(NotAllowed, OwnRequest))


def purpose_for(request: OperatorRequest, case: SubjectRequest) -> str:
    """Purpose of reading for the download, if the copy has locked sessions. Raises PurposeMissing."""
    return rules.purpose_of(request) if services.locked_in(case) else ""


@operator_page(HANDLE, VIEW, methods="POST")
@recently_authenticated(doing="build a copy of a person's data")
def build(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    return perform(request, access_id, services.build_access_copy, "The copy is being built.")


@operator_page(HANDLE, VIEW, methods="POST")
@recently_authenticated(doing="request a copy with locked sessions")
def ask(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    """Asks a second person for a copy with the locked sessions."""
    asked = partial(services.request_full_copy, purpose=rules.purpose_of(request))
    done = "The copy is being built."
    if settings.GRANT_APPROVAL:
        done = "Approval was requested. Another person has to approve."
    return perform(request, access_id, asked, done)


@operator_page(DECIDE, VIEW, methods="POST")
@recently_authenticated(doing="approve a copy with locked sessions")
def approve(request: OperatorRequest, access_id: UUID) -> HttpResponse:
    done = "Approved. The copy is being built, with the locked sessions."
    return perform(request, access_id, services.approve_full_copy, done, form=ShownForm(request.POST))


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
    purpose_for(request, case)
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
        copy, content = services.fetch(case, token, by=request.user, purpose=purpose_for(request, case))
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
