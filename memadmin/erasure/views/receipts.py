"""The receipt of a request: a page to print, and the signed file."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404
from django.http.response import HttpResponse, HttpResponseBase
from django.shortcuts import render

from memadmin import audit
from memadmin.erasure import access, audit_events
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import VIEW
from memadmin.erasure.receipt_facts import facts_of
from memadmin.web.downloads import as_download
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest


@operator_page(VIEW)
def receipt(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    """The receipt to read and print."""
    case = with_receipt(request, case_id)
    return render(request, "erasure/receipt.html", {"case": case, "receipt": facts_of(case.receipt)})


@operator_page(VIEW)
def receipt_file(request: OperatorRequest, case_id: UUID) -> HttpResponseBase:
    """The signed receipt, byte by byte."""
    case = with_receipt(request, case_id)
    audit.before_showing(audit_events.RECEIPT_DOWNLOADED, by=request.user, target=case, subject=case.subject_id)
    return as_download([case.receipt], f"{case}-receipt.json", "application/json")


def with_receipt(request: OperatorRequest, case_id: UUID) -> SubjectRequest:
    case = access.case_for(request.user, case_id)
    if not case.receipt:
        raise Http404("This request has no receipt yet.")
    return case
