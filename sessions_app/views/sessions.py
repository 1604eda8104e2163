"""Session list: filters, keyset pages, newer sessions, and actions on selected sessions."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse

from memadmin.web.filters import sentences
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.filters import SessionFilter
from sessions_app.forms import AttachForm, LabelForm, SelectionForm
from sessions_app.listing import with_previews, with_snippets
from sessions_app.models import SessionRecord, SessionStore, SubjectKind, SubjectSource, TextSearch
from sessions_app.search.sessions import matching_sessions
from sessions_app.search_syntax import Unsearchable
from sessions_app.services import subjects
from sessions_app.services.revealing import REVEAL
from sessions_app.services.sessions import attach_sessions, detach_sessions, label_sessions, unlabel_sessions
from sessions_app.views import read_audit
from sessions_app.views.refusals import explains_kept_data, refused, way_back

SESSIONS = ListPage("sessions/list.html", salt="sessions", fragment="sessions")


@operator_page("sessions_app.read_content")
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
        "has_stores": bool(page.rows) or SessionStore.objects.exists(),
    }
    read_audit.listed(sessions)
    return SESSIONS.render(request, context, page, status=400 if filters.problems else 200)


def search_page(request: OperatorRequest, filters: SessionFilter, searched: TextSearch) -> HttpResponse:
    """The list, of the sessions under its filters with matching messages."""
    context: dict[str, object] = {"filters": filters, "kinds": SubjectKind.choices, "has_stores": True}
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
def newer(request: HttpRequest) -> HttpResponse:
    """Number of sessions that are newer than those on an open page, under the same filters."""
    filters = SessionFilter(request.GET)
    return SESSIONS.newer(request, filters, filters.queryset(), address=reverse("sessions:list"))


@operator_page("sessions_app.attach_session", methods="POST")
def label(request: OperatorRequest) -> HttpResponse:
    form = LabelForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    word = form.cleaned_data["label"]
    count = label_sessions(form.cleaned_data["session"], word, by=request.user)
    have_it = f"These sessions already have the label “{word}”."
    messages.success(request, f"Label “{word}” added to {session_count(count)}." if count else have_it)
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
@recently_authenticated(doing="attach sessions")
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
    count = attach_sessions(chosen, subject, by=request.user)
    messages.success(request, f"{session_count(count)} attached.")
    return redirect(way_back(request))


@operator_page("sessions_app.attach_session", methods="POST")
@recently_authenticated(doing="detach sessions")
@explains_kept_data
def detach(request: OperatorRequest) -> HttpResponse:
    form = SelectionForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    count = detach_sessions(form.cleaned_data["session"], by=request.user)
    messages.success(request, f"{session_count(count)} detached; patterns no longer attach them.")
    return redirect(way_back(request))


def session_count(count: int) -> str:
    """As in "1 session" or "2 sessions"."""
    return f"{count} session{pluralize(count)}"
