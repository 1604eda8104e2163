"""Pages of legal holds: the list with the form of a new one, one hold, and the actions on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from memadmin.accounts.approvals import services as approvals
from memadmin.accounts.approvals.forms import ShownForm
from memadmin.accounts.approvals.services import ApprovalError, NotAllowed
from memadmin.home.saved_views import has_saved_views
from memadmin.retention.holds import access, services
from memadmin.retention.holds.coverage import coverage_of, preview_of, with_session_counts
from memadmin.retention.holds.extensions import deletions_of
from memadmin.retention.holds.forms import CoverForm, HoldFilters, HoldReviewForm, PlaceHoldForm, ReleaseForm
from memadmin.retention.models import LegalHold
from memadmin.web.addresses import uuid_in
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.performing import Performer
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app.models import Subject

VIEW, PLACE, RELEASE = "retention.view_hold", "retention.place_hold", services.RELEASE

HOLDS = ListPage("retention/holds.html", salt="holds")
MOST_TO_DECIDE = 20


@operator_page(VIEW)
@has_saved_views("retention:holds", VIEW, lambda query, _: HoldFilters(query))
def hold_list(request: OperatorRequest) -> HttpResponse:
    """Requested releases, the holds, and the form of a new one, filled for the subject or session in the address."""
    if not request.user.has_perm(PLACE):
        return list_page(request, None)
    initial = chosen(request)
    form = PlaceHoldForm(by=request.user, initial=initial)
    return list_page(request, form, preview=previewed(CoverForm(initial)) if initial else None)


def previewed(form: CoverForm) -> dict[str, Any]:
    """Context of the preview: the coverage of a hold on what the form names, or why there is none."""
    if not form.is_valid():
        return {"problems": [sentence for sentences in form.errors.values() for sentence in sentences]}
    hold = services.hold_on(form.cleaned_data["target"])
    return {"hold": hold, "coverage": preview_of(hold), "deletions": deletions_of(hold)}


@operator_page(PLACE, methods="POST")
def preview(request: OperatorRequest) -> HttpResponse:
    """The coverage of a hold before it is placed. IDs of subjects are sent in no address."""
    context = previewed(CoverForm(request.POST))
    status = 422 if "problems" in context else 200
    if request.htmx:
        return render(request, "retention/_hold_preview.html", {"preview": context}, status=status)
    form = PlaceHoldForm(by=request.user, initial=request.POST.dict())
    return list_page(request, form, preview=context, status=status)


def chosen(request: OperatorRequest) -> dict[str, str]:
    """First values of the form, by the ids that pages of sessions and subjects link with."""
    if record_id := uuid_in(request.GET.get("session", "")):
        return {"covers": "session", "value": str(record_id)}
    subject_id = uuid_in(request.GET.get("subject", ""))
    subject = Subject.objects.filter(pk=subject_id).prefetch_related("aliases").first() if subject_id else None
    first = subject.aliases.first() if subject else None
    return {"covers": first.kind, "value": first.key} if first else {}


def list_page(
    request: OperatorRequest,
    form: PlaceHoldForm | None,
    *,
    preview: Mapping[str, Any] | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    filters = HoldFilters(request.GET)
    page = HOLDS.page(request, filters.apply().with_names())
    may_release = request.user.has_perm(RELEASE)
    to_decide = LegalHold.objects.to_decide().with_names()[:MOST_TO_DECIDE] if may_release else ()
    context = {
        "filters": filters,
        "holds": with_session_counts(page.rows),
        "to_decide": [
            (hold, approvals.steps_in_list(hold, request.user, services.shown_of(hold))) for hold in to_decide
        ],
        "form": form,
        "preview": preview,
        "problem": problem,
    }
    return HOLDS.render(request, context, page, status=400 if filters.problems else status)


@operator_page(PLACE, methods="POST")
def place(request: OperatorRequest) -> HttpResponse:
    form = PlaceHoldForm(request.POST, by=request.user)
    if not form.is_valid():
        return list_page(request, form, status=422)
    values = form.cleaned_data
    try:
        hold = services.place_hold(
            values["target"],
            reason=values["reason"],
            owner=values["owner"],
            review_on=values["review_on"],
            by=request.user,
        )
    except services.HoldError as problem:
        return list_page(request, form, problem=str(problem), status=409)
    messages.success(request, f"{hold} is in force.")
    return redirect(hold)


@operator_page(VIEW)
def hold(request: OperatorRequest, hold_id: UUID) -> HttpResponse:
    return hold_page(request, access.hold_for(request.user, hold_id))


def hold_page(
    request: OperatorRequest,
    shown: LegalHold,
    *,
    problem: str = "",
    status: int = 200,
    sent: Mapping[str, forms.Form] | None = None,
) -> HttpResponse:
    may_place = request.user.has_perm(PLACE) and not shown.is_released
    context: dict[str, Any] = {
        "hold": shown,
        "coverage": None if shown.is_released else coverage_of(shown),
        "problem": problem,
        "steps": approvals.steps_for(shown, request.user),
        "deletions": [] if shown.is_released else deletions_of(shown),
    }
    if may_place:
        current = {"owner": shown.owner_id, "review_on": shown.review_on}
        context["review_form"] = HoldReviewForm(by=request.user, initial=current)
        if not shown.awaits_release:
            context["release_form"] = ReleaseForm()
    # It takes the place of the empty one, if the state still has that.
    context |= {name: form for name, form in (sent or {}).items() if name in context}
    return render(request, "retention/hold.html", context, status=status)


perform = Performer(access.hold_for, hold_page, (services.HoldError, ApprovalError), forbidden=(NotAllowed,))


@operator_page(PLACE, methods="POST")
def change(request: OperatorRequest, hold_id: UUID) -> HttpResponse:
    form = HoldReviewForm(request.POST, by=request.user)
    return perform(request, hold_id, services.change_hold, "Owner and review date were saved.", review_form=form)


@operator_page(PLACE, methods="POST")
def request_release(request: OperatorRequest, hold_id: UUID) -> HttpResponse:
    done = "The release was requested. Another person has to approve it."
    return perform(request, hold_id, services.request_release, done, release_form=ReleaseForm(request.POST))


@operator_page(RELEASE, methods="POST")
@recently_authenticated(doing="release a legal hold")
def release(request: OperatorRequest, hold_id: UUID) -> HttpResponse:
    return perform(request, hold_id, services.release_hold, "The hold was released.", form=ShownForm(request.POST))


@operator_page(VIEW, methods="POST")
def reject_release(request: OperatorRequest, hold_id: UUID) -> HttpResponse:
    return perform(request, hold_id, services.reject_release, "The hold stays in force.")
