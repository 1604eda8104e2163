"""Actions on all sessions that the filters of the list match, with their number first."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from memadmin.counting import counted
from memadmin.web.all_matching import AllMatching, AllMatchingForm, back_unchanged, list_query, number_for_button
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


class AllSessionsForm(AllMatchingForm):
    """An action on all that match."""

    action = forms.ChoiceField(
        choices=SessionAction.choices, error_messages={"required": "Choose an action.", "invalid_choice": "No action."}
    )
    label = forms.CharField(required=False, max_length=50)
    kind = forms.ChoiceField(required=False, choices=SubjectKind.choices)
    key = forms.CharField(required=False, max_length=512)

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
    filters = SessionFilter(request.GET)
    if filters.problems or filters.searched:
        return HttpResponse(status=204)
    return number_for_button(filters.queryset(), MOST_SESSIONS)


@operator_page("sessions_app.read_content", "sessions_app.attach_session", methods="GET, POST")
def all_matching(request: OperatorRequest) -> HttpResponse:
    """The actions on all sessions that the filters match, of which each has its permission."""
    query = list_query(request)
    filters = SessionFilter(query)
    back = f"{reverse('sessions:list')}?{query.urlencode() or 'view=all'}"
    if filters.problems or filters.searched:
        return back_unchanged(request, back, "Remove the search in messages, and correct the filters first.")
    return ALL.answer(
        request,
        filters,
        filters.queryset(),
        most=MOST_SESSIONS,
        back=back,
        actions=[
            (action.value, action.label) for action in SessionAction if request.user.has_perm(permission_of(action))
        ],
        kinds=SubjectKind.choices,
    )


def begin(request: OperatorRequest, form: AllSessionsForm, ids: list[UUID]) -> HttpResponse:
    """Begins the run, for an unlocking after a recent sign-in."""
    action = SessionAction(form.cleaned_data["action"])
    if not request.user.has_perm(permission_of(action)):
        raise PermissionDenied
    return (begin_unlocking if action == SessionAction.UNLOCK else begin_run)(request, form, ids)


def begin_run(request: OperatorRequest, form: AllSessionsForm, ids: list[UUID]) -> HttpResponse:
    """Begins the run, and shows it."""
    action = SessionAction(form.cleaned_data["action"])
    run = session_changes.begin(ids, action, by=request.user, label=form.cleaned_data["label"], subject=form.subject)
    messages.success(request, f"{run}: {action.label.lower()} for {counted(len(ids), 'sessions')}, in progress.")
    return redirect(run)


begin_unlocking = recently_authenticated(doing="unlock sessions")(begin_run)

ALL = AllMatching("sessions", "sessions/all_matching.html", AllSessionsForm, begin)
