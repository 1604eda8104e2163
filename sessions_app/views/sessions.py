"""Session list: filters, keyset pages, newer sessions, and actions on selected sessions."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse

from memadmin.accounts.content_access import rules
from memadmin.home.saved_views import has_saved_views
from memadmin.replica import from_replica
from memadmin.web.filters import sentences
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.filters import SessionFilter
from sessions_app.forms import AttachForm, LabelForm, SelectionForm, UnlockForm
from sessions_app.listing import with_previews, with_snippets
from sessions_app.models import SessionRecord, SessionStore, SubjectKind, SubjectSource, TextSearch
from sessions_app.search.sessions import matching_sessions
from sessions_app.search_syntax import Unsearchable
from sessions_app.services import subjects
from sessions_app.services.revealing import REVEAL
from sessions_app.services.sessions import (
    SubjectChange,
    change_subject,
    label_sessions,
    undo_subject_change,
    unlabel_sessions,
)
from sessions_app.views import read_audit
from sessions_app.views.refusals import explains_kept_data, refused, way_back

SESSIONS = ListPage("sessions/list.html", salt="sessions", fragment="sessions")

UNDO = "attachment"
"""Session key of what undoes the latest attachment or detachment."""

UNDO_WITHIN = timedelta(minutes=10)


@operator_page("sessions_app.read_content")
@has_saved_views("sessions:list", "sessions_app.read_content", lambda query, _: SessionFilter(query))
@from_replica
def session_list(request: OperatorRequest) -> HttpResponse:
    filters = SessionFilter(request.GET)
    if filters.searched:
        return search_page(request, filters, filters.searched)
    page = SESSIONS.page(request, filters.queryset())
    sessions = with_previews(page.rows, reader=request.user, stores=filters.stores, subjects=filters.subjects)
    context = {
        "filters": filters,
        "sessions": sessions,
        "kinds": SubjectKind.choices,
        "unlock_form": unlock_form(),
        "has_stores": bool(page.rows) or SessionStore.objects.exists(),
    }
    read_audit.listed(sessions)
    return SESSIONS.render(request, context, page, status=400 if filters.problems else 200)


def unlock_form() -> UnlockForm:
    """The reason, in the form of all actions on selected sessions, of which the others need none."""
    return UnlockForm(auto_id="bulk-unlock-%s", use_required_attribute=False)


def search_page(request: OperatorRequest, filters: SessionFilter, searched: TextSearch) -> HttpResponse:
    """The list, of the sessions under its filters with matching messages."""
    rules.purpose_of(request)
    context: dict[str, object] = {
        "filters": filters,
        "kinds": SubjectKind.choices,
        "unlock_form": unlock_form(),
        "has_stores": True,
    }
    status, found = 200, list[SessionRecord]()
    granted = access.granted_to(request.user)
    try:
        matches = matching_sessions(
            searched,
            filters.queryset().readable(granted),
            cursor=request.GET.get("cursor", ""),
            size=SESSIONS.size,
            is_masked=not request.user.has_perm(REVEAL),
            granted=granted,
            store=filters.active.get("store"),
        )
    except BadCursor as problem:
        context["bad_cursor"], status = problem, 400
    except Unsearchable as problem:
        context["unsearchable"] = problem
    else:
        found = [match.record for match in matches.found]
        read_audit.snippets(request, found, granted)
        sessions = with_snippets(matches.found, reader=request.user, stores=filters.stores, subjects=filters.subjects)
        context |= {"matches": matches, "sessions": sessions}
    read_audit.found(request, found)
    return SESSIONS.render(request, context, status=status)


@operator_page("sessions_app.read_content")
@from_replica
def newer(request: HttpRequest) -> HttpResponse:
    """Number of sessions that are newer than those on an open page, under the same filters."""
    filters = SessionFilter(request.GET)
    return SESSIONS.newer(request, filters, filters.queryset(), address=reverse("sessions:list"))


@operator_page("sessions_app.read_content", methods="POST")
def open_by_id(request: OperatorRequest) -> HttpResponse:
    """Opens the session with an ID, also while other servers of a distributed database are away."""
    record = access.open_by_id(request.user, request.POST.get("session_id", "").strip().replace("\0", ""))
    return redirect(record) if record else refused(request, "There is no session with this ID.")


@operator_page("sessions_app.attach_session", methods="POST")
def label(request: OperatorRequest) -> HttpResponse:
    form = LabelForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    word = form.cleaned_data["label"]
    count = label_sessions(form.cleaned_data["session"], word, by=request.user)
    have_it = f"These sessions already have the label “{word}”."
    if count:
        messages.success(request, f"Label “{word}” added to {session_count(count)}.")
    else:
        messages.info(request, have_it)
    return redirect(way_back(request))


@operator_page("sessions_app.attach_session", methods="POST")
@explains_kept_data
def unlabel(request: OperatorRequest) -> HttpResponse:
    form = LabelForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    word = form.cleaned_data["label"]
    count = unlabel_sessions(form.cleaned_data["session"], word, by=request.user)
    messages.success(request, f"Label “{word}” removed from {session_count(count)}.")
    return redirect(way_back(request))


@operator_page("sessions_app.attach_session", methods="POST")
@explains_kept_data
def attach(request: OperatorRequest) -> HttpResponse:
    """Attaches the selected sessions to a subject. An unknown subject is created only after confirmation."""
    form = AttachForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    chosen, kind, key = form.cleaned_data["session"], form.cleaned_data["kind"], form.cleaned_data["key"]
    try:
        if form.cleaned_data["create"]:
            subject = subjects.subject_for_key(SubjectKind(kind), key, SubjectSource.OPERATOR)
        else:
            subject = subjects.known_subject(kind, key)
    except subjects.UnknownKey as unknown:
        context = {"form": form, "chosen": chosen, "unknown": unknown, "next": way_back(request)}
        return render(request, "sessions/attach.html", context, status=422)
    change = change_subject(chosen, subject, by=request.user)
    offer_undo(request, change, f"{session_count(len(change.before))} attached.")
    return redirect(way_back(request))


@operator_page("sessions_app.attach_session", methods="POST")
@explains_kept_data
def detach(request: OperatorRequest) -> HttpResponse:
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    change = change_subject(form.cleaned_data["session"], None, by=request.user)
    count = len(change.before)
    them = "it" if count == 1 else "them"
    offer_undo(request, change, f"{session_count(count)} detached; patterns no longer attach {them}.")
    return redirect(way_back(request))


def offer_undo(request: OperatorRequest, change: SubjectChange, done: str) -> None:
    """Keeps what undoes the change in this browser's session, the latest change only, and says so in the toast."""
    before = [(str(pk), subject_id and str(subject_id), source) for pk, subject_id, source in change.before]
    request.session[UNDO] = [time.time(), change.subject_id and str(change.subject_id), before]
    messages.success(request, done, extra_tags=reverse("sessions:attachment-undo") if before else "")


@operator_page("sessions_app.attach_session", methods="POST")
@explains_kept_data
def undo_attachment(request: OperatorRequest) -> HttpResponse:
    """Undoes the latest attachment or detachment of this browser."""
    done_at, subject_id, before = request.session.get(UNDO, (0, None, ()))
    if time.time() - done_at > UNDO_WITHIN.total_seconds():
        messages.warning(request, "This can no longer be undone. Nothing was changed.")
        return redirect(way_back(request))
    change = SubjectChange(
        subject_id and UUID(subject_id),
        [(UUID(pk), subject and UUID(subject), source) for pk, subject, source in before],
    )
    count = undo_subject_change(change, by=request.user)
    del request.session[UNDO]
    if left := len(before) - count:
        messages.warning(
            request, f"Undone for {session_count(count)}; {session_count(left)} changed since, and stayed."
        )
    else:
        messages.success(request, f"Undone: {session_count(count)} as before.")
    return redirect(way_back(request))


def session_count(count: int) -> str:
    """As in "1 session" or "2 sessions"."""
    return f"{count} session{pluralize(count)}"
