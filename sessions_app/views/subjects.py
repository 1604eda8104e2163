"""Subjects: the list, one subject with its sessions and ids, and actions on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import prefetch_related_objects
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from memadmin.audit.pages.recent_readers import who_looked
from memadmin.counting import COUNT_CAP
from memadmin.home.saved_views import has_saved_views
from memadmin.replica import from_replica
from memadmin.web.filters import sentences
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.extensions import beside_subject
from sessions_app.filters import SubjectFilter
from sessions_app.forms import KeyForm
from sessions_app.listing import ListedSession, with_previews
from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectKind
from sessions_app.models.querysets import SessionRecordQuerySet
from sessions_app.services import subjects
from sessions_app.views import read_audit, subject_parts
from sessions_app.views.refusals import explains_kept_data, refused, way_back

SUBJECTS = ListPage("sessions/subjects.html", salt="subjects", fragment="subjects")
SESSIONS = ListPage("sessions/subject.html", salt="subject", fragment="sessions", size=25)
LOOKERS_DAYS = 30


@operator_page("sessions_app.view_subject")
@has_saved_views("sessions:subjects", "sessions_app.view_subject", lambda query, _: SubjectFilter(query))
@from_replica
def subject_list(request: OperatorRequest) -> HttpResponse:
    filters = SubjectFilter(request.GET)
    page = SUBJECTS.page(request, filters.queryset())
    read_audit.subjects(page.rows)
    return SUBJECTS.render(request, {"filters": filters}, page, status=400 if filters.problems else 200)


@operator_page("sessions_app.view_subject")
def subject(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    """Page of a subject, or the tab that the address names; the address of a merged one redirects to the subject into
    which it was merged.
    """
    shown = access.subject_for(request.user, subject_id)
    if shown.merged_into_id is not None:
        messages.info(request, "The requested subject was merged into this one.")
        return redirect(subjects.merge_target(shown))
    prefetch_related_objects([shown], "aliases")
    tabs = subject_parts.tabs_for(request.user, shown)
    tab = next((each for each in tabs if each.name == request.GET.get("tab", subject_parts.SESSIONS)), None)
    if tab is None:
        raise Http404
    context: dict[str, Any] = {
        "subject": shown,
        "tabs": tabs,
        "tab": tab,
        "merged": Subject.objects.filter(merged_into=shown).newest_first().prefetch_related("aliases", "merged"),
        "kinds": SubjectKind.choices,
        "panels": beside_subject.answers(request.user, shown),
    }
    if tab.fill is not None:
        read_audit.subject(shown)
        return SESSIONS.render(request, context | {"tab_panel": tab.fill()})
    if request.user.has_perm("audit.view_auditevent"):
        since = timezone.now() - timedelta(days=LOOKERS_DAYS)
        context |= {"lookers": who_looked(shown.group_ids(), since=since), "lookers_days": LOOKERS_DAYS}
    # Content only for those who may read it; who a subject is known as, for all who see subjects.
    if not request.user.has_perm("sessions_app.read_content"):
        read_audit.subject(shown)
        context["moments"] = subject_parts.line_of_time(request.user, shown, [])
        return SESSIONS.render(request, context)
    records = SessionRecord.objects.on_record().about(shown).newest_first()
    page = SESSIONS.page(request, records, of=shown.pk)
    sessions = with_previews(page.rows, reader=request.user, subjects=[shown])
    is_whole = not (page.newer or page.older)
    context |= {"sessions": sessions, "holdings": holdings(records, sessions, is_whole=is_whole)}
    if not page.newer:
        context["moments"] = subject_parts.line_of_time(request.user, shown, sessions)
    read_audit.subject(shown, sessions)
    return SESSIONS.render(request, context, page)


@dataclass(frozen=True, slots=True)
class Holding:
    """Sessions and items of a subject in one store."""

    store: SessionStore
    session_count: int
    items: str
    """Number of items of the sessions on the page: with + if there are more, ? if none is known."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """Stores with a subject's sessions; of a subject with very many only the newest sessions are counted.

    The numbers of each store are minimums then.
    """

    by_store: list[Holding]
    session_count: int

    @property
    def is_capped(self) -> bool:
        return self.session_count > COUNT_CAP


def holdings(records: SessionRecordQuerySet, listed: Sequence[ListedSession], *, is_whole: bool) -> Holdings:
    """Stores with a subject's sessions. Two queries. Items are counted by the page of sessions; `is_whole` if that
    lists all sessions.
    """
    store_ids = list(records.values_list("store_id", flat=True)[: COUNT_CAP + 1])
    counts = Counter(store_ids[:COUNT_CAP])
    stores = SessionStore.objects.filter(pk__in=counts)
    by_store = [
        Holding(
            store,
            counts[store.pk],
            items_of([each for each in listed if each.record.store_id == store.pk], is_whole=is_whole),
        )
        for store in stores
    ]
    return Holdings(by_store, len(store_ids))


def items_of(listed: Sequence[ListedSession], *, is_whole: bool) -> str:
    counts = [each.item_count for each in listed if each.item_count is not None]
    if not counts:
        return "?"
    is_exact = is_whole and len(counts) == len(listed) and max(counts) <= COUNT_CAP
    return f"{sum(min(count, COUNT_CAP) for count in counts):,}{'' if is_exact else '+'}"


@operator_page("sessions_app.merge_subject", methods="POST")
@recently_authenticated(doing="change a subject's IDs")
def add_alias(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    named = access.subject_for(request.user, subject_id)
    form = KeyForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    kind, key = SubjectKind(form.cleaned_data["kind"]), form.cleaned_data["key"]
    try:
        subjects.add_alias(named, kind=kind, key=key, by=request.user)
    except subjects.SubjectError as problem:
        return refused_for(request, problem)
    messages.success(request, "The ID was added.")
    return redirect(named)


@operator_page("sessions_app.merge_subject", methods="POST")
@recently_authenticated(doing="change a subject's IDs")
def remove_alias(request: OperatorRequest, subject_id: UUID, alias_id: int) -> HttpResponse:
    named = access.subject_for(request.user, subject_id)
    alias = access.alias_for(request.user, named, alias_id)
    try:
        subjects.remove_alias(alias, by=request.user)
    except subjects.SubjectError as problem:
        return refused_for(request, problem)
    messages.success(request, "The ID was removed. The sessions are unchanged.")
    return redirect(named)


@operator_page("sessions_app.merge_subject", methods="POST")
@recently_authenticated(doing="merge subjects")
def merge(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    """Merges the subject with the submitted id into the subject of this page."""
    into = access.subject_for(request.user, subject_id)
    form = KeyForm(request.POST)
    if not form.is_valid():
        return refused(request, *sentences(form))
    kind, key = form.cleaned_data["kind"], form.cleaned_data["key"]
    try:
        into = subjects.merge_subjects(subjects.known_subject(kind, key), into, by=request.user)
    except subjects.SubjectError as problem:
        return refused_for(request, problem)
    messages.success(request, "The subjects are merged. Nothing was moved; the merge can be undone.")
    return redirect(into)


@operator_page("sessions_app.merge_subject", methods="POST")
@recently_authenticated(doing="undo a merge")
@explains_kept_data
def undo_merge(request: OperatorRequest, subject_id: UUID) -> HttpResponse:
    merged = access.subject_for(request.user, subject_id)
    try:
        subjects.undo_merge(merged, by=request.user)
    except subjects.SubjectError as problem:
        return refused_for(request, problem)
    messages.success(request, "The merge was undone.")
    return redirect(way_back(request))


def refused_for(request: HttpRequest, problem: subjects.SubjectError) -> HttpResponse:
    if isinstance(problem, subjects.SubjectConflict):
        return refused(request, str(problem), status=409, subject=problem.subject)
    return refused(request, str(problem), status=409 if isinstance(problem, subjects.SubjectWasErased) else 422)
