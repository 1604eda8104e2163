"""The page of one request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpResponse

from memadmin.erasure import access, services
from memadmin.erasure.access_copy.panel import access_context
from memadmin.erasure.approving import is_about
from memadmin.erasure.closing import exceptions_of
from memadmin.erasure.data_map.services import current_record
from memadmin.erasure.forms import ApprovalForm, ExtendForm, IdentityForm, NoteForm, RefuseForm
from memadmin.erasure.holder_view_models import (
    exception_lines,
    out_of_reach_lines,
    scan_lines,
    steps_view,
)
from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.preview import Preview
from memadmin.erasure.receipt_facts import facts_of
from memadmin.erasure.scope import scope_of
from memadmin.erasure.view_models import length_in_words, views_of
from memadmin.retention.models import LegalHold
from memadmin.runs.models import Run
from memadmin.runs.view_models import view_of
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

State = SubjectRequest.State

LOG_ENTRIES = 100

BEFORE_START = (State.RECEIVED, State.CHECKED, State.AWAITING)


@operator_page(VIEW)
def case(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    """One request: its progress, which refreshes itself, what it is about, and what can be done."""
    return case_page(request, access.case_for(request.user, case_id))


def case_page(
    request: OperatorRequest,
    shown: SubjectRequest,
    *,
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, forms.Form] | None = None,
) -> HttpResponse:
    """The page of a request, with the reason why nothing was changed, and with the form that was sent, by its name."""
    (view,) = views_of([shown], request.user)
    is_own = not shown.is_closed and is_about(shown, request.user)
    context: dict[str, Any] = {
        "case": shown,
        "view": view,
        "problem": problem,
        # A refresh would take the reason away while it is read.
        "refresh": 0 if problem else seconds_to_refresh(shown),
        "is_own": is_own,
        "notes": shown.notes.select_related("by")[:LOG_ENTRIES],
        "cancel_window": length_in_words(settings.CANCEL_WINDOW),
    }
    if view.is_erasure:
        context |= erasure_context(request, shown)
    if shown.kind == SubjectRequest.Kind.ACCESS:
        context |= access_context(shown, request.user)
    if not is_own:
        context |= actions_on(request, shown)
    # It takes the place of the empty one, if the state still has that.
    context |= {name: form for name, form in (sent or {}).items() if name in context}
    return render_page_or_fragment(request, "erasure/request.html", context, fragment="state", status=status)


def seconds_to_refresh(shown: SubjectRequest) -> int:
    """Seconds after which the page asks again; 0 if nothing happens by itself."""
    if shown.run is None or shown.is_closed:
        return 0
    is_busy = shown.state == State.RUNNING and shown.run.state in (Run.State.WAITING, Run.State.RUNNING)
    return 2 if is_busy else 30


def erasure_context(request: OperatorRequest, shown: SubjectRequest) -> dict[str, Any]:
    """Context of an erasure: its preview or steps, scans, holds, exceptions and receipt."""
    context: dict[str, Any] = {"out_of_reach": out_of_reach_lines(shown.preview.get("out_of_reach", ()))}
    if shown.run:
        context["item"] = view_of(shown.run, request.user)
    if shown.is_started:
        context |= {"steps": steps_view(shown), "scans": scan_lines(shown)}
    elif shown.previewed_at:
        context["preview"] = Preview.of_json(shown.preview)
    if shown.state in (*BEFORE_START, State.APPROVED):
        scope = scope_of(shown.subject, [])
        context["holds"] = LegalHold.objects.filter(number__in=scope.all_holds()).order_by("number")
        context["is_held"] = bool(scope.holds())
        if len(scope.group) > 1:
            context["merged_ids"] = [key for _, key in scope.keys]
    if shown.is_started and shown.is_closed:
        context["exceptions"] = exception_lines(exceptions_of(shown))
    if shown.is_started:
        context["record"] = current_record()
    if shown.receipt:
        context["receipt"] = facts_of(shown.receipt)
    return context


def actions_on(request: OperatorRequest, shown: SubjectRequest) -> dict[str, Any]:
    """The forms of what this operator may do now."""
    found: dict[str, Any] = {}
    user, is_erasure = request.user, shown.kind == SubjectRequest.Kind.ERASURE
    if user.has_perm(HANDLE):
        found["comment_form"] = NoteForm(auto_id="comment-%s")
        if shown.state == State.RECEIVED:
            found["identity_form"] = IdentityForm(auto_id="identity-%s")
        if shown.state in BEFORE_START:
            found["refuse_form"] = RefuseForm(auto_id="refuse-%s")
            found["may_count"] = is_erasure
        if not shown.is_closed and not shown.is_started:
            found["cancel_form"] = NoteForm(auto_id="cancel-%s")
        if services.may_extend(shown):
            initial = {"until": services.latest_due_date(shown)}
            found["extend_form"] = ExtendForm(auto_id="extend-%s", initial=initial)
        found["may_ask"] = is_erasure and shown.state == State.CHECKED
        found["may_leave_out"] = shown.state in (State.RUNNING, State.SCANNING)
    if shown.state == State.AWAITING:
        found["approval_steps"] = services.steps_for(shown, user)
        found["approval_form"] = ApprovalForm(auto_id="approval-%s")
    return found
