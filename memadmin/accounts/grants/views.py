"""Pages of grants: the list of own and waiting grants, and one grant with its actions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.timezone import now

from memadmin.accounts import notices
from memadmin.accounts.approvals.forms import ShownForm
from memadmin.accounts.approvals.services import ApprovalError, NotAllowed
from memadmin.accounts.grants import access
from memadmin.accounts.grants import services as grants
from memadmin.accounts.grants.forms import ReviewForm
from memadmin.accounts.models import ContentGrant
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest

GRANTS = ListPage("accounts/grants.html", salt="grants")
WAITING_SHOWN = 50


@operator_page()
def grant_list(request: OperatorRequest) -> HttpResponse:
    """Own grants; for approvers, also those that wait for them."""
    mine = ContentGrant.objects.asked_for_by(request.user).newest_first().with_people()
    context: dict[str, object] = {"moment": now(), "may_decide": request.user.has_perm(grants.DECIDE)}
    if context["may_decide"]:
        context |= grants_in_progress(now()) | {"why_no_notices": notices.why_no_notices()}
    return GRANTS.render(request, context, GRANTS.page(request, mine))


def grants_in_progress(at: datetime) -> dict[str, object]:
    """Requests to decide about, open grants, and ended ones to review."""
    every = ContentGrant.objects.with_people()
    return {
        "to_decide": every.awaiting_decision(at)[:WAITING_SHOWN],
        "to_review": every.awaiting_review(at)[:WAITING_SHOWN],
        "open": every.open_at(at).order_by("expires_at", "id")[:WAITING_SHOWN],
    }


@operator_page()
def grant(request: OperatorRequest, grant_id: UUID) -> HttpResponse:
    return grant_page(request, access.grant_for(request.user, grant_id))


def grant_page(
    request: OperatorRequest,
    shown: ContentGrant,
    *,
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, forms.Form] | None = None,
) -> HttpResponse:
    context = {
        "grant": shown,
        "steps": grants.steps_for(shown, request.user),
        "form": ReviewForm(),
        "problem": problem,
    }
    return render(request, "accounts/grant.html", context | dict(sent or {}), status=status)


perform = Performer(access.grant_for, grant_page, (ApprovalError,), forbidden=(NotAllowed,))


@operator_page(grants.DECIDE, methods="POST")
@recently_authenticated(doing="approve a grant")
def approve(request: OperatorRequest, grant_id: UUID) -> HttpResponse:
    return perform(request, grant_id, grants.approve_grant, "The grant is active.", form=ShownForm(request.POST))


@operator_page(grants.DECIDE, methods="POST")
def refuse(request: OperatorRequest, grant_id: UUID) -> HttpResponse:
    return perform(request, grant_id, grants.refuse_grant, "The request was rejected.")


@operator_page(methods="POST")
def end(request: OperatorRequest, grant_id: UUID) -> HttpResponse:
    return perform(request, grant_id, grants.end_grant, "The grant has ended.")


@operator_page(grants.DECIDE, methods="POST")
def review(request: OperatorRequest, grant_id: UUID) -> HttpResponse:
    return perform(request, grant_id, grants.review_grant, "Reviewed.", form=ReviewForm(request.POST))
