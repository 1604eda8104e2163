"""The log as a list: health, filters, keyset pages, and search for the events about a person or record."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from procrastinate.exceptions import AlreadyEnqueued

from memadmin.audit.audit_events import LOG_SEARCHED, LOG_VERIFICATION_REQUESTED, LOG_VIEWED
from memadmin.audit.jobs import verify_log
from memadmin.audit.log import label_registry
from memadmin.audit.log.label_registry import MOST_FOUND, SUBJECT
from memadmin.audit.log.recording import before_showing, record
from memadmin.audit.models import AuditEvent
from memadmin.audit.pages.forms import REQUEST_ID, AuditFilter, AuditLookupForm, uuid_or_none
from memadmin.audit.pages.health import health
from memadmin.audit.pages.listing import listed
from memadmin.audit.pages.volume import volume
from memadmin.audit.transparency import checkpoints
from memadmin.home.saved_views import has_saved_views
from memadmin.replica import from_replica
from memadmin.web.filters import sentences
from memadmin.web.fragments import render_page_or_fragment
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest

WHAT_IS_FOUND = (
    "Try 3 or more characters of a subject ID or ticket, a session or request ID, or 8 characters of an ID in the log."
)

LOGGED = re.compile(rf"(?:request )?(?P<request_id>{REQUEST_ID})|job (?P<job_id>[0-9]{{1,18}})")
"""A request or a job, as lines of the server's log name it."""

EVENTS = ListPage("audit/list.html", salt="audit", fragment="events")


@operator_page("audit.view_auditevent")
@has_saved_views("audit:list", "audit.view_auditevent", AuditFilter)
def log(request: OperatorRequest) -> HttpResponse:
    """The filtered events. Viewing them is recorded first."""
    filters = AuditFilter(request.GET, request.user)
    before_showing(
        LOG_VIEWED, by=request.user, subject=filters.active.get("subject"), details={"filter": filters.in_full()}
    )
    return log_page(request, filters)


@from_replica
def log_page(request: OperatorRequest, filters: AuditFilter) -> HttpResponse:
    page = EVENTS.page(request, *filters.branches())
    latest = checkpoints.latest()
    events = listed(page.rows, filters.names, signed_size=latest.size if latest else 0)
    context = base_context(filters) | {"events": events}
    return EVENTS.render(request, context, page, status=400 if filters.problems else 200)


def base_context(filters: AuditFilter) -> dict[str, object]:
    """Context of every list page; a fragment does not query the health."""
    return {"filters": filters, "health": SimpleLazyObject(health)}


@operator_page("audit.view_auditevent")
def health_now(request: OperatorRequest) -> HttpResponse:
    """The head of the page again, while a verification is running."""
    return render(request, "audit/_health.html", {"health": health()})


@operator_page("audit.view_auditevent")
@from_replica
def by_day(request: OperatorRequest) -> HttpResponse:
    """The chart of the list, under the same filters. Counts alone, so that looking at it is no event."""
    filters = AuditFilter(request.GET, request.user)
    context = {"filters": filters, "volume": volume(filters)}
    status = 400 if filters.problems else 200
    return render_page_or_fragment(request, "audit/volume.html", context, fragment="volume", status=status)


@operator_page("audit.view_auditevent")
@from_replica
def newer(request: OperatorRequest) -> HttpResponse:
    """Number of events written after an open page was rendered, under the same filters."""
    filters = AuditFilter(request.GET, request.user)
    return EVENTS.newer(request, filters, *filters.branches(), address=reverse("audit:list"))


@operator_page("audit.view_auditevent", methods="POST")
def about(request: OperatorRequest) -> HttpResponse:
    """Redirects from the chosen filters, and the typed name of a person or record, to the events; the address contains
    only its id."""
    form = AuditLookupForm(request.POST)
    filters = AuditFilter(form.other_filters(), request.user)
    if not form.is_valid():
        return render(request, "audit/list.html", base_context(filters) | {"problems": sentences(form)}, status=422)
    typed = form.cleaned_data["q"]
    if not typed:
        return redirect(f"{reverse('audit:list')}?{form.other_filters().urlencode()}")
    if logged := events_of_logged(filters, typed):
        before_showing(LOG_SEARCHED, by=request.user, counters={"found": 1})
        return redirect(logged)
    matches = matches_of(filters, typed)
    # The typed text may be personal data, so only the matches are recorded.
    before_showing(
        LOG_SEARCHED, by=request.user, shown=[match.ref for match in matches], counters={"found": len(matches)}
    )
    if len(matches) == 1:
        return redirect(matches[0].url)
    # As many as are looked for: there may be more.
    may_be_more = max(Counter(match.kind for match in matches).values(), default=0) >= MOST_FOUND
    context = base_context(filters) | {"typed": typed, "matches": matches, "most_found": MOST_FOUND * may_be_more}
    if not matches:
        context["problems"] = [f"Nothing found for “{typed}”. {WHAT_IS_FOUND}"]
    return render(request, "audit/list.html", context, status=200 if matches else 422)


def events_of_logged(filters: AuditFilter, typed: str) -> str | None:
    """Address of the events of the typed request or job; None if none was typed, or it has no events."""
    if match := LOGGED.fullmatch(typed.lower()):
        (name, value), *_ = ((name, value) for name, value in match.groupdict().items() if value)
        number = int(value, 16 if name == "request_id" else 10)
        if AuditEvent.objects.filter(**{name: number}).exists():
            return f"{reverse('audit:list')}?{filters.query_string_with(name, value)}"
    return None


@dataclass(frozen=True, slots=True)
class LookupMatch:
    kind: str
    ref: UUID
    name: str
    url: str


def matches_of(filters: AuditFilter, typed: str) -> list[LookupMatch]:
    """Records that match the typed text; any UUID matches, because the log outlives the records."""
    found = label_registry.find(filters.names.viewer, typed)
    if not found and (between := label_registry.ids_beginning(typed)):
        if events := AuditEvent.objects.filter(id__range=between).order_by("id")[:MOST_FOUND]:
            return [LookupMatch("", event.id, f"{event}: {event.type}", event.get_absolute_url()) for event in events]
        found = recorded_ids(*between)
        if not found and (ref := uuid_or_none(typed)):
            found = [("", ref)]
    for kind, ref in found:
        filters.names.want(kind, ref)
    matches = []
    for kind, ref in found:
        query = filters.query_string_with("subject" if kind == SUBJECT else "object", ref)
        name = filters.names.of(kind, ref).text if kind else label_registry.short(ref)
        matches.append(LookupMatch(kind, ref, name, f"{reverse('audit:list')}?{query}"))
    return matches


def recorded_ids(first: UUID, last: UUID) -> list[tuple[str, UUID]]:
    """Kinds and ids of the subjects and objects of events, also of records that are gone; an object's kind is ""."""
    events = AuditEvent.objects.all()
    subjects = events.refs_between("subject_ref", first, last, at_most=MOST_FOUND)
    objects = events.refs_between("object_ref", first, last, at_most=MOST_FOUND)
    return [*((SUBJECT, ref) for ref in subjects), *(("", ref) for ref in objects if ref not in subjects)]


@operator_page("audit.verify_log", methods="POST")
def verify(request: OperatorRequest) -> HttpResponse:
    """Queues a verification by a worker; the head of the page shows the result."""
    try:
        with transaction.atomic():
            record(LOG_VERIFICATION_REQUESTED, by=request.user)
            verify_log.defer()
    except AlreadyEnqueued:
        messages.info(request, "A verification is already waiting for a worker.")
    else:
        messages.success(request, "Verification started. It takes about 30 seconds per million events.")
    return redirect("audit:list")
