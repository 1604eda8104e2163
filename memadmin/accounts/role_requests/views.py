"""Page of role requests: waiting and closed ones, with the decisions of an administrator."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.timezone import now

from memadmin.accounts.approvals.services import ApprovalError, NotAllowed, steps_in_list
from memadmin.accounts.models import RoleRequest
from memadmin.accounts.role_requests import access, services
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

SHOWN = 50


@operator_page(services.ADMINISTER)
def role_list(request: OperatorRequest) -> HttpResponse:
    return role_page(request)


def role_page(request: OperatorRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    every, at = RoleRequest.objects.with_people(), now()
    context = {
        "waiting": [
            (each, steps_in_list(each, request.user, services.shown_of(each)))
            for each in every.awaiting_decision(at)[:SHOWN]
        ],
        "closed": [(each, each.approval.state_at(at)) for each in every.closed(at)[:SHOWN] if each.approval],
        "problem": problem,
    }
    return render(request, "accounts/roles.html", context, status=status)


@operator_page(services.ADMINISTER, methods="POST")
@recently_authenticated(doing="confirm a role")
def confirm(request: OperatorRequest, request_id: UUID) -> HttpResponse:
    take = partial(services.confirm_role, shown=request.POST.get("shown", ""))
    return step(request, request_id, take, "Confirmed. The role is in effect.")


@operator_page(services.ADMINISTER, methods="POST")
def refuse(request: OperatorRequest, request_id: UUID) -> HttpResponse:
    return step(request, request_id, services.refuse_role, "The request is closed. Nothing was granted.")


def step(request: OperatorRequest, request_id: UUID, take: Callable[..., RoleRequest], done: str) -> HttpResponse:
    """Performs one action and shows the list, with the reason where the action is not possible."""
    shown = access.request_for(request_id)
    try:
        take(shown, by=request.user)
    except ApprovalError as refused:
        return role_page(request, problem=str(refused), status=403 if isinstance(refused, NotAllowed) else 409)
    messages.success(request, done)
    return redirect("accounts:roles")
