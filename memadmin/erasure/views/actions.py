"""Actions on a request: each performs one service and shows the request, or why nothing was changed."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import render

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.erasure import access, services
from memadmin.erasure.forms import ApprovalForm, ExtendForm, IdentityForm, NoteForm, RefuseForm, SendBackForm
from memadmin.erasure.holder_view_models import StepView
from memadmin.erasure.permissions import APPROVE, HANDLE, VIEW
from memadmin.erasure.views.cases import case_page
from memadmin.erasure.views.run_actions import REFUSED, pause_run, resume_run
from memadmin.runs.access import CONTROL
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

perform = Performer(
    access.case_for,
    case_page,
    REFUSED,
    forbidden=(NotAllowed, services.OwnRequest),
    fields={services.WrongKey: "typed", services.NotLater: "until"},
)


@operator_page(HANDLE, VIEW, methods="POST")
def check(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = IdentityForm(request.POST, auto_id="identity-%s")
    return perform(request, case_id, services.check_identity, "The identity check was noted.", identity_form=form)


@operator_page(HANDLE, VIEW, methods="POST")
def count(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    """Counts what would be erased."""
    return perform(request, case_id, services.make_preview, "Counted. Nothing was changed.")


@operator_page(HANDLE, VIEW, methods="POST")
def ask(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    """Asks a second person to approve."""
    return perform(
        request, case_id, services.request_approval, "Approval was requested. Another person has to approve."
    )


@operator_page(APPROVE, VIEW, methods="POST")
@recently_authenticated(doing="approve an erasure")
def approve(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = ApprovalForm(request.POST, auto_id="approval-%s")
    return perform(
        request,
        case_id,
        services.approve_request,
        "The erasure was approved. It starts when the time to cancel is over.",
        approval_form=form,
    )


@operator_page(VIEW, methods="POST")
def reject(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    """Rejects the approval, or withdraws one's own request for it."""
    form = SendBackForm(request.POST)
    return perform(request, case_id, services.reject_request, "The request was sent back.", form=form)


@operator_page(HANDLE, VIEW, methods="POST")
def refuse(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = RefuseForm(request.POST, auto_id="refuse-%s")
    return perform(request, case_id, services.refuse_request, "The request was refused.", refuse_form=form)


@operator_page(HANDLE, VIEW, methods="POST")
def extend(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = ExtendForm(request.POST, auto_id="extend-%s")
    return perform(request, case_id, services.extend_request, "The time was extended.", extend_form=form)


@operator_page(HANDLE, VIEW, methods="POST")
def cancel(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = NoteForm(request.POST, auto_id="cancel-%s")
    return perform(
        request, case_id, services.cancel_request, "The request was cancelled. Nothing was erased.", cancel_form=form
    )


@operator_page(HANDLE, VIEW, methods="POST")
def comment(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    form = NoteForm(request.POST, auto_id="comment-%s")
    return perform(request, case_id, services.comment, "The note was added to the case log.", comment_form=form)


@operator_page(CONTROL, VIEW, methods="POST")
def pause(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    return perform(request, case_id, pause_run, "The erasure was paused.")


@operator_page(CONTROL, VIEW, methods="POST")
def resume(request: OperatorRequest, case_id: UUID) -> HttpResponse:
    return perform(request, case_id, resume_run, "The erasure continues.")


@operator_page(HANDLE, VIEW, methods="GET, POST")
@recently_authenticated(doing="end an erasure without one of its stores")
def leave_out(request: OperatorRequest, case_id: UUID, step_id: int) -> HttpResponse:
    """The decision to end an erasure without a step that waits for its store."""
    case = access.case_for(request.user, case_id)
    step = access.step_for(request.user, case, step_id)
    form = NoteForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return perform(
            request,
            case_id,
            lambda case, by: services.leave_out(case, step, note=form.cleaned_data["note"], by=by),
            "The step was left out. The receipt will name it.",
        )
    context = {"case": case, "step": StepView(step, ""), "form": form}
    return render(request, "erasure/leave_out.html", context, status=422 if form.is_bound else 200)
