"""Actions on all sessions that the filters of the list match, with their number first."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse

from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app.filters import SessionFilter
from sessions_app.services import session_changes
from sessions_app.services.session_changes import MOST_SESSIONS, SessionAction, permission_of
from sessions_app.services.sessions import label_length

LABELS = (SessionAction.LABEL, SessionAction.UNLABEL)


class AllMatchingForm(forms.Form):
    """An action on all that match, and the number that the page gave."""

    action = forms.ChoiceField(
        choices=SessionAction.choices, error_messages={"required": "Choose an action.", "invalid_choice": "No action."}
    )
    label = forms.CharField(required=False, max_length=50)
    counted = forms.IntegerField(min_value=0)

    def clean(self) -> dict[str, object]:
        values = self.cleaned_data
        if values.get("action") in LABELS and not 0 < len(values.get("label", "")) <= label_length():
            self.add_error("label", "A label needs a name.")
        return values


@operator_page("sessions_app.read_content", "sessions_app.attach_session", methods="POST")
def all_matching(request: OperatorRequest) -> HttpResponse:
    """States how many sessions match and offers the actions; after confirmation begins a run on the sessions that match
    at that moment. Asks again with both numbers if they differ.
    """
    query = request.POST.get("query", "")
    filters = SessionFilter(QueryDict(query))
    address = f"{reverse('sessions:list')}?{query or 'view=all'}"
    if filters.problems or filters.searched:
        messages.warning(request, "Remove the search in messages, and correct the filters first. Nothing was changed.")
        return redirect(address)
    ids = matching_ids(filters)
    if not ids or len(ids) > MOST_SESSIONS:
        words = f"More than {MOST_SESSIONS:,} sessions match. Add a filter." if ids else "No session matches any more."
        messages.warning(request, f"{words} Nothing was changed.")
        return redirect(address)
    context: dict[str, object] = {
        "filters": filters,
        "query": query,
        "back": address,
        "count": len(ids),
        "actions": [
            (action.value, action.label) for action in SessionAction if request.user.has_perm(permission_of(action))
        ],
    }
    if "counted" not in request.POST:
        return render(request, "sessions/all_matching.html", context)
    form = AllMatchingForm(request.POST)
    if not form.is_valid():
        return render(request, "sessions/all_matching.html", context | {"problems": sentences(form)}, status=422)
    action, counted = SessionAction(form.cleaned_data["action"]), form.cleaned_data["counted"]
    if not request.user.has_perm(permission_of(action)):
        raise PermissionDenied
    if counted != len(ids):
        changed = f"{counted:,} matched when you looked, {len(ids):,} match now. Nothing was changed; confirm again."
        given = {"problems": [changed], "action": action.value, "label": form.cleaned_data["label"]}
        return render(request, "sessions/all_matching.html", context | given, status=409)
    run = session_changes.begin(ids, action, by=request.user, label=form.cleaned_data["label"])
    messages.success(
        request, f"{run}: {action.label.lower()} for {counted:,} session{pluralize(counted)}, in progress."
    )
    return redirect(run if request.user.has_perm("runs.view_run") else address)


def matching_ids(filters: SessionFilter) -> list[UUID]:
    """Ids of the matching sessions, at most MOST_SESSIONS + 1. One query."""
    return list(filters.queryset().values_list("pk", flat=True)[: MOST_SESSIONS + 1])
