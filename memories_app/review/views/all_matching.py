"""Rejecting or snoozing all proposals that the filters of the queue match, with their number first."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse

from memadmin.counting import capped, count_up_to
from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.audit_events import RejectReason
from memories_app.review import queue_changes
from memories_app.review.forms import SNOOZES
from memories_app.review.queue import QueueFilter
from memories_app.review.queue_changes import MOST_PROPOSALS, REVIEW, QueueAction

SAMPLED = "sampled"
"""The filter whose memories are approved already."""


class AllProposalsForm(forms.Form):
    """A decision about all that match, and the number that the page gave."""

    action = forms.ChoiceField(
        choices=QueueAction.choices, error_messages={"required": "Choose an action.", "invalid_choice": "No action."}
    )
    reason = forms.ChoiceField(choices=[("", ""), *RejectReason.choices], required=False)
    length = forms.ChoiceField(choices=[("", ""), *((name, name) for name in SNOOZES)], required=False)
    counted = forms.IntegerField(min_value=0)

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
    """Number of proposals that the filters match, for the button that offers all of them."""
    filters = QueueFilter(request.GET, request.user)
    if filters.problems:
        return HttpResponse(status=204)
    return HttpResponse(capped(count_up_to(filters.queryset(), MOST_PROPOSALS), MOST_PROPOSALS))


@operator_page(REVIEW, methods="GET, POST")
def all_matching(request: OperatorRequest) -> HttpResponse:
    """States how many proposals match; the form begins a run on those that match at that moment. Asks again
    with both numbers if they differ.
    """
    query = request.POST.get("query", "") if request.method == "POST" else request.GET.urlencode()
    filters = QueueFilter(QueryDict(query), request.user)
    address = f"{reverse('reviews:list')}?as=table&{query}"
    if filters.problems or filters.active.get("show") == SAMPLED:
        messages.warning(request, "This is not possible under these filters. Nothing was changed.")
        return redirect(address)
    ids = matching_ids(filters)
    if not ids or len(ids) > MOST_PROPOSALS:
        words = f"More than {MOST_PROPOSALS:,} proposals match. Add a filter." if ids else "No proposal matches now."
        messages.warning(request, f"{words} Nothing was changed.")
        return redirect(address)
    context: dict[str, object] = {
        "filters": filters,
        "query": query,
        "back": address,
        "count": len(ids),
        "actions": QueueAction.choices,
        "reasons": RejectReason.choices,
        "lengths": [(name, f"1 {name}") for name in SNOOZES],
    }
    if request.method != "POST":
        return render(request, "memories/all_matching.html", context)
    form = AllProposalsForm(request.POST)
    given = {name: request.POST.get(name, "") for name in ("action", "reason", "length")}
    if not form.is_valid():
        context |= given | {"problems": sentences(form)}
        return render(request, "memories/all_matching.html", context, status=422)
    action, counted = QueueAction(form.cleaned_data["action"]), form.cleaned_data["counted"]
    if counted != len(ids):
        changed = f"{counted:,} matched when you looked, {len(ids):,} match now. Nothing was changed; confirm again."
        return render(request, "memories/all_matching.html", context | given | {"problems": [changed]}, status=409)
    run = queue_changes.begin(ids, action, by=request.user, said=form.said)
    messages.success(request, f"{run}: {action.label.lower()} {counted:,} proposal{pluralize(counted)}, in progress.")
    return redirect(run)


def matching_ids(filters: QueueFilter) -> list[UUID]:
    """Ids of the matching proposals, at most MOST_PROPOSALS + 1. One query."""
    return list(filters.queryset().values_list("pk", flat=True)[: MOST_PROPOSALS + 1])
