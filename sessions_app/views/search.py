"""Search of the top bar: subjects, tickets and sessions by a part of their id, and messages by their words.

The text is sent by POST and shown in the page, but it is in no address, title, log or Referer: these contain the random
id of a TextSearch. What looks like an id and names one subject, ticket or session opens it at once.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.db.models import prefetch_related_objects
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from memadmin.accounts.content_access import rules
from memadmin.replica import from_replica
from memadmin.web.lists import ListPage
from memadmin.web.pages import operator_page
from memadmin.web.paging import BadCursor
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.listing import with_previews
from sessions_app.models import SessionRecord, TextSearch
from sessions_app.search.identifiers import LEAST_CHARACTERS, NEWEST, aliases_like, sessions_like, tickets_like
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
    """Saves the input and redirects to its results; with the field `filters`, to the session list under these.

    Asks first for the purpose, if one is missing: the page of that question keeps the input.
    """
    if request.method != "POST":
        return render(request, "sessions/search.html")
    rules.purpose_of(request)
    typed = request.POST.get("q", "")
    try:
        remembered = remember_search(request.user, typed)
    except Unsearchable as problem:
        context = {"problem": str(problem), "typed_search": typed[:200]}
        return render(request, "sessions/search.html", context, status=422)
    if "filters" not in request.POST:
        results = reverse("sessions:search-results", args=[remembered.pk])
        if only := only_match(request, remembered.text):
            messages.info(request, "The only ID that matches was opened. Messages were not searched.")
            return redirect(only)
        return redirect(results)
    query = QueryDict(request.POST["filters"], mutable=True)
    query["search"] = str(remembered.pk)
    return redirect(f"{reverse('sessions:list')}?{query.urlencode()}")


@operator_page("sessions_app.read_content")
@from_replica
def search_results(request: OperatorRequest, search_id: UUID) -> HttpResponse:
    """Matching ids. The page itself requests matching messages, which may take a few seconds."""
    rules.purpose_of(request)
    try:
        searched = search_for(search_id)
    except SearchGone as problem:
        return gone(request, problem)
    return render(request, "sessions/search.html", {"search": searched, **places(request, searched)})


@operator_page("sessions_app.read_content")
@from_replica
def search_messages(request: OperatorRequest, search_id: UUID) -> HttpResponse:
    """One page of the sessions with matching messages, newest first."""
    rules.purpose_of(request)
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
    sessions = sessions_like(text, at_most=PLACES_SHOWN + 1)
    read_audit.places(aliases, sessions, tickets)
    listed = with_previews(sessions[:PLACES_SHOWN], reader=request.user)
    return {
        "aliases": aliases,
        "tickets": tickets,
        "sessions": listed,
        "has_more": max(len(aliases), len(tickets), len(sessions)) > PLACES_SHOWN,
        "newest": NEWEST,
        "shown": PLACES_SHOWN,
        "is_short": len(text) < LEAST_CHARACTERS,
        "least": LEAST_CHARACTERS,
    }


def only_match(request: OperatorRequest, text: str) -> str:
    """Address of the one subject, ticket or session that a text names; empty if it names several or is no id.

    A ticket with one session is that session. Four queries at most.
    """
    if not any(character.isdigit() for character in text) or any(character.isspace() for character in text):
        return ""
    aliases = list(aliases_like(text)[:2]) if request.user.has_perm("sessions_app.view_subject") else []
    tickets = list(tickets_like(text)[:2])
    sessions = sessions_like(text, at_most=2)
    of_ticket = list(SessionRecord.objects.on_record().filter(ticket=tickets[0])[:2]) if len(tickets) == 1 else []
    found = {alias.subject.get_absolute_url() for alias in aliases} | {each.get_absolute_url() for each in sessions}
    if len(of_ticket) == 1:
        found.add(of_ticket[0].get_absolute_url())
    elif tickets:
        found |= {f"{reverse('sessions:list')}?{urlencode({'ticket': ticket})}" for ticket in tickets}
    return found.pop() if len(found) == 1 else ""


def gone(request: OperatorRequest, problem: SearchGone) -> HttpResponse:
    return render(request, "sessions/search.html", {"problem": str(problem)}, status=410)
