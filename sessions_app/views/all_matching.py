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

from memadmin.counting import capped, count_up_to
from memadmin.web.filters import sentences
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app.filters import SessionFilter
from sessions_app.models import Subject, SubjectKind
from sessions_app.services import session_changes
from sessions_app.services.session_changes import MOST_SESSIONS, SessionAction, permission_of
from sessions_app.services.sessions import label_length
from sessions_app.services.subjects import UnknownKey, known_subject

LABELS = (SessionAction.LABEL, SessionAction.UNLABEL)


class AllMatchingForm(forms.Form):
    """An action on all that match, and the number that the page gave."""

    action = forms.ChoiceField(
        choices=SessionAction.choices, error_messages={"required": "Choose an action.", "invalid_choice": "No action."}
    )
    label = forms.CharField(required=False, max_length=50)
    kind = forms.ChoiceField(required=False, choices=SubjectKind.choices)
    key = forms.CharField(required=False, max_length=512)
    counted = forms.IntegerField(min_value=0)

    def clean(self) -> dict[str, object]:
        values = self.cleaned_data
        if values.get("action") in LABELS and not 0 < len(values.get("label", "")) <= label_length():
            self.add_error("label", "A label needs a name.")
        if values.get("action") == SessionAction.ATTACH and "key" in values:
            self.check_subject(values.get("kind") or SubjectKind.USER, values["key"])
        return values

    def check_subject(self, kind: str, key: str) -> None:
        """Finds the subject; an unknown one is not created for many sessions, as it may be a typing error."""
        if not key:
            self.add_error("key", "Enter an ID.")
            return
        try:
            self.subject = known_subject(kind, key)
        except UnknownKey:
            self.add_error("key", "There is no subject with this ID. Attach one session to it first, which creates it.")

    subject: Subject | None = None
    """The subject to attach to, after validation."""


@operator_page("sessions_app.read_content", "sessions_app.attach_session")
def matching_count(request: OperatorRequest) -> HttpResponse:
    """Number of sessions that the filters match, for the button that offers all of them."""
    filters = SessionFilter(request.GET)
    if filters.problems or filters.searched:
        return HttpResponse(status=204)
    return HttpResponse(capped(count_up_to(filters.queryset(), MOST_SESSIONS), MOST_SESSIONS))


@operator_page("sessions_app.read_content", "sessions_app.attach_session", methods="GET, POST")
def all_matching(request: OperatorRequest) -> HttpResponse:
    """States how many sessions match and offers the actions; the form begins a run on the sessions that match
    at that moment. Asks again with both numbers if they differ.
    """
    query = request.POST.get("query", "") if request.method == "POST" else request.GET.urlencode()
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
        "kinds": SubjectKind.choices,
        "actions": [
            (action.value, action.label) for action in SessionAction if request.user.has_perm(permission_of(action))
        ],
    }
    if request.method != "POST":
        return render(request, "sessions/all_matching.html", context)
    form = AllMatchingForm(request.POST)
    given = {name: request.POST.get(name, "") for name in ("action", "label", "kind", "key")}
    if not form.is_valid():
        context |= given | {"problems": sentences(form)}
        return render(request, "sessions/all_matching.html", context, status=422)
    action, counted = SessionAction(form.cleaned_data["action"]), form.cleaned_data["counted"]
    if not request.user.has_perm(permission_of(action)):
        raise PermissionDenied
    if counted != len(ids):
        changed = f"{counted:,} matched when you looked, {len(ids):,} match now. Nothing was changed; confirm again."
        return render(request, "sessions/all_matching.html", context | given | {"problems": [changed]}, status=409)
    start = begin_unlocking if action == SessionAction.UNLOCK else begin
    return start(request, form, ids)


def begin(request: OperatorRequest, form: AllMatchingForm, ids: list[UUID]) -> HttpResponse:
    """Begins the run, and shows it."""
    action = SessionAction(form.cleaned_data["action"])
    run = session_changes.begin(ids, action, by=request.user, label=form.cleaned_data["label"], subject=form.subject)
    messages.success(
        request, f"{run}: {action.label.lower()} for {len(ids):,} session{pluralize(len(ids))}, in progress."
    )
    return redirect(run)


begin_unlocking = recently_authenticated(doing="unlock sessions")(begin)


def matching_ids(filters: SessionFilter) -> list[UUID]:
    """Ids of the matching sessions, at most MOST_SESSIONS + 1. One query."""
    return list(filters.queryset().values_list("pk", flat=True)[: MOST_SESSIONS + 1])
