"""Rejecting or snoozing all proposals that the filters of the queue match, with their number first."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from memadmin.counting import counted
from memadmin.web.all_matching import AllMatching, AllMatchingForm, back_unchanged, list_query, number_for_button
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.audit_events import RejectReason
from memories_app.review import queue_changes
from memories_app.review.forms import SNOOZES
from memories_app.review.queue import QueueFilter
from memories_app.review.queue_changes import MOST_PROPOSALS, REVIEW, QueueAction

SAMPLED = "sampled"
"""The filter whose memories are approved already."""


class AllProposalsForm(AllMatchingForm):
    """A decision about all that match."""

    action = forms.ChoiceField(
        choices=QueueAction.choices, error_messages={"required": "Choose an action.", "invalid_choice": "No action."}
    )
    reason = forms.ChoiceField(choices=[("", ""), *RejectReason.choices], required=False)
    length = forms.ChoiceField(choices=[("", ""), *((name, name) for name in SNOOZES)], required=False)

    def clean(self) -> dict[str, object]:
        values = self.cleaned_data
        if values.get("action") == QueueAction.REJECT and not values.get("reason"):
            self.add_error("reason", "Choose a reason. Distillers learn from it.")
        if values.get("action") == QueueAction.SNOOZE and not values.get("length"):
            self.add_error("length", "Choose a snooze time.")
        return values

    @property
    def said(self) -> str:
        is_rejection = self.cleaned_data["action"] == QueueAction.REJECT
        return str(self.cleaned_data["reason" if is_rejection else "length"])


@operator_page(REVIEW)
def matching_count(request: OperatorRequest) -> HttpResponse:
    filters = QueueFilter(request.GET, request.user)
    return HttpResponse(status=204) if filters.problems else number_for_button(filters.queryset(), MOST_PROPOSALS)


@operator_page(REVIEW, methods="GET, POST")
def all_matching(request: OperatorRequest) -> HttpResponse:
    """The decision about all proposals that the filters match."""
    query = list_query(request)
    filters = QueueFilter(query, request.user)
    back = f"{reverse('reviews:list')}?as=table&{query.urlencode()}"
    if filters.problems or filters.active.get("show") == SAMPLED:
        return back_unchanged(request, back, "This is not possible under these filters.")
    return ALL.answer(
        request,
        filters,
        filters.queryset(),
        most=MOST_PROPOSALS,
        back=back,
        actions=QueueAction.choices,
        reasons=RejectReason.choices,
        lengths=[(name, f"1 {name}") for name in SNOOZES],
    )


def begin(request: OperatorRequest, form: AllProposalsForm, ids: list[UUID]) -> HttpResponse:
    """Begins the run, and shows it."""
    action = QueueAction(form.cleaned_data["action"])
    run = queue_changes.begin(ids, action, by=request.user, said=form.said)
    messages.success(request, f"{run}: {action.label.lower()} {counted(len(ids), 'proposals')}, in progress.")
    return redirect(run)


ALL = AllMatching("proposals", "memories/all_matching.html", AllProposalsForm, begin)
