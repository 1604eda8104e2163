"""Search in one session: from match to match, with a time limit for each step."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from memadmin.accounts.content_access import rules
from memadmin.web.addresses import at_item
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.models import SessionRecord, TextSearch
from sessions_app.search.in_session import find_in_session
from sessions_app.search.remembered import SearchGone, remember_search, search_for
from sessions_app.search.snippets import readable_texts
from sessions_app.search_syntax import ParsedSearch, Unsearchable
from sessions_app.services.revealing import REVEAL
from sessions_app.stores.base import StoreUnavailable
from sessions_app.views.refusals import refused
from sessions_app.views.window import Cursor, Window, form_asked_for


@operator_page("sessions_app.read_content", methods="POST")
def find(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Searches in this session, and opens it at the first match."""
    rules.purpose_of(request)
    record = access.session_for(request.user, record_id)
    try:
        search = remember_search(request.user, request.POST.get("q", ""))
        return step(request, record, search)
    except (Unsearchable, StoreUnavailable) as problem:
        return refused(request, str(problem))


@operator_page("sessions_app.read_content")
def find_next(request: OperatorRequest, record_id: UUID, search_id: UUID) -> HttpResponse:
    """Opens the session at the next match after a signed place, or at the previous one before it."""
    rules.purpose_of(request)
    record = access.session_for(request.user, record_id)
    cursor = Cursor.read(record, request.GET.get("from", ""))
    try:
        return step(request, record, search_for(search_id), cursor)
    except (SearchGone, Unsearchable, StoreUnavailable) as problem:
        messages.warning(request, str(problem))
        return redirect(record)


def step(
    request: OperatorRequest, record: SessionRecord, search: TextSearch, cursor: Cursor | None = None
) -> HttpResponseRedirect:
    """Opens the session at the next match; without one, where the step began, with a message.

    One search of at most settings.SEARCH_SCAN_SECONDS. Raises Unsearchable and StoreUnavailable.
    """
    direction = cursor.direction if cursor else "after"
    result = find_in_session(
        record.store,
        record.session_id,
        ParsedSearch.parse(search.text),
        before=cursor.position if cursor and direction == "before" else None,
        after=cursor.position if cursor and direction != "before" else None,
        is_masked=not request.user.has_perm(REVEAL),
        opens=access.may_open(request.user, record),
    )
    query = {"find": str(search.pk)}
    if form := form_asked_for(request.POST) or form_asked_for(request.GET):
        query["form"] = form
    if result.note:
        messages.warning(request, result.note)
    if result.found:
        return redirect(at_item(record.get_absolute_url(), result.item_id, query))
    if result.searched_to:
        messages.info(request, "The search reached its time limit. Continue with the arrow beside the search field.")
        query["at"] = Cursor(direction, result.searched_to).sign(record)
    elif cursor:
        messages.info(request, f"No {'earlier' if direction == 'before' else 'later'} item matches. {result.extent}")
        query |= {"at": Cursor("at", cursor.position).sign(record), "end": direction}
    elif record.is_encrypted:
        query["end"] = "all"
        messages.info(
            request, "No matches in the readable items of this session. Searching encrypted items needs a grant."
        )
    else:
        query["end"] = "all"
        messages.info(request, f"No matches in this session. {result.extent}")
    return redirect(f"{record.get_absolute_url()}?{urlencode(query)}")


@dataclass(frozen=True, slots=True)
class SessionSearchResult:
    """A search in a session for its page: pattern to highlight, and links to the next and previous match."""

    search_id: str
    text: str
    highlight: re.Pattern[str]
    next_url: str
    """Empty, like the next one, where the search said that nothing more matches there."""
    previous_url: str
    number: int
    """Number of the selected match among those on the page, from 1; 0 if no match is selected."""
    count: int
    """Number of matches on this page; the arrows may lead to other pages."""


def search_shown(query: QueryDict, record: SessionRecord, window: Window) -> SessionSearchResult | None:
    """Search named in the query; None without one. One query if there is one. Raises SearchGone."""
    try:
        search = search_for(UUID(query.get("find"))) if "find" in query else None
        parsed = ParsedSearch.parse(search.text) if search else None
    except (ValueError, Unsearchable) as problem:
        raise SearchGone from problem
    if search is None or parsed is None:
        return None
    place = next((item.position for item in window.page.items if item.id == window.target), None)
    if place is None and window.cursor:
        place = window.cursor.position
    matches = [item.id for item in window.page.items if parsed.matches_text("\n".join(readable_texts(item.raw)))]
    form = {"form": asked} if (asked := form_asked_for(query)) else {}
    onward = reverse("sessions:find-next", args=[record.pk, search.pk])
    end = query.get("end")
    next_url = f"{onward}?{urlencode(form | {'from': Cursor('after', place).sign(record)})}" if place else onward
    previous_url = f"{onward}?{urlencode(form | {'from': Cursor('before', place).sign(record)})}" if place else ""
    return SessionSearchResult(
        search_id=str(search.pk),
        text=search.text,
        highlight=parsed.visible_pattern(),
        next_url="" if end in ("all", "after") else next_url,
        previous_url="" if end in ("all", "before") else previous_url,
        number=matches.index(window.target) + 1 if window.target in matches else 0,
        count=len(matches),
    )
