"""Actions on all sessions that the filters of the list match, with their number first."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
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
from sessions_app.models import Subject, SubjectKind, UnlockRequest
from sessions_app.services import session_changes, unlocking
from sessions_app.services.session_changes import MOST_SESSIONS, SessionAction, permission_of
from sessions_app.services.sessions import label_length
from sessions_app.services.subjects import UnknownKey, known_subject
from sessions_app.views.unlocking import ask

LABELS = (SessionAction.LABEL, SessionAction.UNLABEL)

UNLOCK = "unlock"
"""The action that is no run, but a request to a second person."""


def actions_of(user: User) -> list[tuple[str, str]]:
    """The actions that this user may take, with their labels."""
    found = [(action.value, str(action.label)) for action in SessionAction if user.has_perm(permission_of(action))]
    return [*found, (UNLOCK, "Request unlocking")] if user.has_perm(unlocking.REQUEST) else found


class AllSessionsForm(AllMatchingForm):
    """An action on all that match."""

    action = forms.ChoiceField(
        choices=[*SessionAction.choices, (UNLOCK, "Request unlocking")],
        error_messages={"required": "Choose an action.", "invalid_choice": "No action."},
    )
    label = forms.CharField(required=False, max_length=50)
    kind = forms.ChoiceField(required=False, choices=SubjectKind.choices)
    key = forms.CharField(required=False, max_length=512)
    reason = forms.ChoiceField(required=False, choices=UnlockRequest.Reason.choices)

    def clean(self) -> dict[str, object]:
        values = self.cleaned_data
        if values.get("action") in LABELS and not 0 < len(values.get("label", "")) <= label_length():
            self.add_error("label", "A label needs a name.")
        if values.get("action") == UNLOCK and not values.get("reason"):
            self.add_error("reason", "Choose a reason.")
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
        actions=actions_of(request.user),
        kinds=SubjectKind.choices,
        reasons=UnlockRequest.Reason.choices,
    )


def begin(request: OperatorRequest, form: AllSessionsForm, ids: list[UUID]) -> HttpResponse:
    """Begins the run, and shows it; or requests unlocking, after a recent sign-in."""
    if form.cleaned_data["action"] == UNLOCK:
        return request_unlocking(request, form, ids)
    action = SessionAction(form.cleaned_data["action"])
    if not request.user.has_perm(permission_of(action)):
        raise PermissionDenied
    run = session_changes.begin(ids, action, by=request.user, label=form.cleaned_data["label"], subject=form.subject)
    messages.success(request, f"{run}: {action.label.lower()} for {counted(len(ids), 'sessions')}, in progress.")
    return redirect(run)


@recently_authenticated(doing="request to unlock sessions")
def request_unlocking(request: OperatorRequest, form: AllSessionsForm, ids: list[UUID]) -> HttpResponse:
    if not request.user.has_perm(unlocking.REQUEST):
        raise PermissionDenied
    return ask(request, ids, form.cleaned_data["reason"])


ALL = AllMatching("sessions", "sessions/all_matching.html", AllSessionsForm, begin)
