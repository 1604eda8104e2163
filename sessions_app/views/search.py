"""Search of the top bar: subjects, tickets and sessions by a part of their id, and messages by their words.

The text is sent by POST and shown in the page, but it is in no address, title, log or Referer: these contain the random
id of a TextSearch. A single match is listed and not opened at once: the words may occur elsewhere, too, and the back
button would not leave a page that redirects.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import prefetch_related_objects
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.models import SessionRecord, TextSearch
from sessions_app.search.identifiers import LEAST_CHARACTERS, aliases_like, sessions_beginning, tickets_like
from sessions_app.search.remembered import SearchGone, remember_search, search_for
from sessions_app.search.sessions import matching_sessions
from sessions_app.search_syntax import Unsearchable
from sessions_app.services.revealing import REVEAL
from sessions_app.stores.base import StoreUnavailable
from sessions_app.views import read_audit

PLACES_SHOWN = 10
MATCHES = ListPage("sessions/search_messages.html", salt="search", fragment="matches", size=20)


@operator_page("sessions_app.read_content", methods="GET, POST")
def search(request: OperatorRequest) -> HttpResponse:
    """Saves the input and redirects to its results; with the field `filters`, to the session list under these."""
    if request.method != "POST":
        return render(request, "sessions/search.html")
    typed = request.POST.get("q", "")
    try:
        remembered = remember_search(request.user, typed)
    except Unsearchable as problem:
        return render(request, "sessions/search.html", {"problem": str(problem), "typed": typed[:200]}, status=422)
    if "filters" not in request.POST:
        return redirect("sessions:search-results", remembered.pk)
    query = QueryDict(request.POST["filters"], mutable=True)
    query["search"] = str(remembered.pk)
    return redirect(f"{reverse('sessions:list')}?{query.urlencode()}")


@operator_page("sessions_app.read_content")
def search_results(request: OperatorRequest, search_id: UUID) -> HttpResponse:
    """Matching ids. The page itself requests matching messages, which may take a few seconds."""
    try:
        searched = search_for(search_id)
    except SearchGone as problem:
        return gone(request, problem)
    return render(request, "sessions/search.html", {"search": searched, **places(request, searched)})


@operator_page("sessions_app.read_content")
def search_messages(request: OperatorRequest, search_id: UUID) -> HttpResponse:
    """One page of the sessions with matching messages, newest first."""
    context: dict[str, Any] = {}
    status = 200
    try:
        context["search"] = searched = search_for(search_id)
        granted = access.granted_to(request.user)
        context["matches"] = matches = matching_sessions(
            searched,
            SessionRecord.objects.on_record().readable(granted),
            cursor=request.GET.get("cursor", ""),
            size=MATCHES.size,
            is_masked=not request.user.has_perm(REVEAL),
            granted=granted,
        )
        records = [match.record for match in matches.found]
        read_audit.found(request, records)
        read_audit.snippets(request, records, granted)
        prefetch_related_objects(records, "subject__aliases")
    except SearchGone as problem:
        return gone(request, problem)
    except Unsearchable as problem:
        context["problem"] = str(problem)
    except StoreUnavailable as away:
        context["problem"], status = str(away), 503
    except BadCursor as problem:
        context["bad_cursor"], status = problem, 400
    return MATCHES.render(request, context, status=status)


def places(request: OperatorRequest, searched: TextSearch) -> dict[str, Any]:
    """Closest matches of each kind, and whether there are more."""
    text = searched.text
    sees_subjects = request.user.has_perm("sessions_app.view_subject")
    aliases = list(aliases_like(text)[: PLACES_SHOWN + 1]) if sees_subjects else []
    tickets = list(tickets_like(text)[: PLACES_SHOWN + 1])
    sessions = list(sessions_beginning(text)[: PLACES_SHOWN + 1])
    read_audit.places(aliases, sessions, tickets)
    return {
        "aliases": aliases,
        "tickets": tickets,
        "sessions": sessions,
        "shown": PLACES_SHOWN,
        "is_short": len(text) < LEAST_CHARACTERS,
        "least": LEAST_CHARACTERS,
    }


def gone(request: OperatorRequest, problem: SearchGone) -> HttpResponse:
    return render(request, "sessions/search.html", {"problem": str(problem)}, status=410)
