"""Actions on a batch: each performs one service and shows the batch, or why nothing was changed."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.accounts.approvals.services import NotAllowed
from memadmin.erasure.batches import access, services
from memadmin.erasure.batches.forms import CorrectForm
from memadmin.erasure.batches.sealed import unseal
from memadmin.erasure.batches.view_models import LineView
from memadmin.erasure.batches.views import approval_form, batch_page
from memadmin.erasure.forms import ExtendForm, SendBackForm
from memadmin.erasure.permissions import APPROVE, HANDLE, VIEW
from memadmin.erasure.services import NotLater, OwnRequest, RequestError
from memadmin.erasure.views.run_actions import REFUSED, pause_run, resume_run
from memadmin.runs.access import CONTROL
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

perform = Performer(
    access.batch_for,
    batch_page,
    REFUSED,
    forbidden=(NotAllowed, OwnRequest),
    fields={services.WrongConfirmation: "typed", NotLater: "until"},
)


@operator_page(HANDLE, VIEW, methods="GET, POST")
def correct(request: OperatorRequest, batch_id: UUID, line_number: int) -> HttpResponse:
    """Another key for one broken line."""
    batch = access.batch_for(request.user, batch_id)
    line = access.line_for(request.user, batch, line_number)
    text = unseal(line.sealed)
    first = {"key": text.other_key or text.key, "kind": text.kind}
    form = CorrectForm(request.POST if request.method == "POST" else None, initial=first)
    status, problem = 422 if form.is_bound else 200, ""
    if form.is_valid():
        try:
            line = services.correct_line(batch, line, **form.cleaned_data, by=request.user)
        except RequestError as error:
            problem, status = str(error), 409
        else:
            if not line.problem:
                messages.success(request, f"Line {line.number:,} is part of the batch now.")
                return redirect(batch)
            form.add_error("key", LineView(line).sentence)
    context = {"batch": batch, "line": LineView(line), "form": form, "problem": problem}
    return render(request, "erasure/batches/correct.html", context, status=status)


@operator_page(HANDLE, VIEW, methods="POST")
def count(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    return perform(request, batch_id, services.count_again, "The count was started. Nothing is changed by it.")


@operator_page(HANDLE, VIEW, methods="POST")
def ask(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    return perform(
        request, batch_id, services.request_approval, "Approval was requested. Another person has to approve."
    )


@operator_page(APPROVE, VIEW, methods="POST")
@recently_authenticated(doing="approve the erasures of a batch")
def approve(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    form = approval_form(access.batch_for(request.user, batch_id), request.POST)
    return perform(
        request,
        batch_id,
        services.approve,
        "The batch was approved. It starts when the time to cancel is over.",
        approval_form=form,
    )


@operator_page(VIEW, methods="POST")
def reject(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    """Rejects the approval, or withdraws one's own request for it."""
    return perform(request, batch_id, services.reject, "The batch was sent back.", form=SendBackForm(request.POST))


@operator_page(HANDLE, VIEW, methods="POST")
def extend(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    form = ExtendForm(request.POST, auto_id="extend-%s")
    return perform(request, batch_id, services.extend, "The time was extended, also of its cases.", extend_form=form)


@operator_page(HANDLE, VIEW, methods="POST")
def cancel(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    return perform(request, batch_id, services.cancel, "The batch was cancelled. Nothing was erased.")


@operator_page(CONTROL, VIEW, methods="POST")
def pause(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    return perform(
        request, batch_id, pause_run, "The batch was paused. A subject that was begun is erased; the scan waits."
    )


@operator_page(CONTROL, VIEW, methods="POST")
def resume(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    return perform(request, batch_id, resume_run, "The batch continues.")


@operator_page(HANDLE, VIEW, methods="POST")
def retry(request: OperatorRequest, batch_id: UUID) -> HttpResponse:
    """Repeats the failed cases of a batch."""
    return perform(request, batch_id, services.retry_failed, "The failed subjects are tried again.")
