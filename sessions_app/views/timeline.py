"""Page of a session: its timeline in pages of 100 items, with the live refresh of its open end."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render

from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.search.remembered import SearchGone
from sessions_app.services.inspection import inspect_again
from sessions_app.stores.base import StoreUnavailable
from sessions_app.views import read_audit
from sessions_app.views.find import search_shown
from sessions_app.views.refusals import store_away
from sessions_app.views.session_page import NEWS_COUNTED, NewItems, around_timeline, open_session, window_context
from sessions_app.views.window import Cursor, Window, choose_window, fingerprint, form_asked_for, is_whole

LIVE_ITEMS = 300
"""Number of items up to which a page follows a session; after that it offers the next page."""

STOP_POLLING = 286
"""Status by which htmx asks no more."""


@operator_page("sessions_app.read_content")
def timeline(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    record = access.session_for(request.user, record_id)
    try:
        reader, branches = open_session(request, record, request.GET)
        window = choose_window(reader, record, request.GET)
        item_count = len(window.page.items) if is_whole(window.page) else reader.count(record.session_id)
        newest = reader.end_of(record.session_id) if window.page.has_later else None
    except StoreUnavailable as away:
        return store_away(request, record, away)
    if window.status == 404:
        inspect_again(record)
    try:
        found = search_shown(request.GET, record, window)
    except SearchGone as gone:
        found = None
        messages.warning(request, str(gone))
    context = {
        **window_context(request, record, window, found, branches, form=form_asked_for(request.GET), newest=newest),
        **around_timeline(request, record, reader, window),
        "item_count": item_count,
        "problem": window.problem,
    }
    read_audit.session(request, record, window.page.items)
    return render(request, "sessions/timeline.html", context, status=window.status)


@operator_page("sessions_app.read_content")
def live(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """The timeline at the open end of a session, if anything in it changed: written, popped, compacted or redacted.

    The whole window is compared and not just its last item, because a run can commit items that belong before others
    that were already visible. 204 makes htmx leave the page unchanged.
    """
    record = access.session_for(request.user, record_id)
    cursor = Cursor.read(record, request.GET.get("from", ""))
    try:
        reader, branches = open_session(request, record, request.GET)
        page = (
            reader.page_at(record.session_id, cursor.position, LIVE_ITEMS)
            if cursor
            else reader.first_page(record.session_id, LIVE_ITEMS)
        )
    except StoreUnavailable:
        return HttpResponse(status=204)
    if fingerprint(page.items) == request.GET.get("state"):
        return HttpResponse(status=204)
    window = Window(page, target=request.GET.get("item", ""))
    try:
        found = search_shown(request.GET, record, window)
    except SearchGone:
        found = None
    read_audit.news(request, record, page.items)
    seen = Cursor.read(record, request.GET.get("seen", ""))
    context = window_context(
        request,
        record,
        window,
        found,
        branches,
        form=form_asked_for(request.GET),
        seen=seen.position if seen else None,
        newest=page.items[-1].position if page.items else None,
    )
    return render(request, "sessions/timeline.html#timeline", context)


@operator_page("sessions_app.read_content")
def news(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Number of items written after a page was opened that does not show the end of its session; 204 if none.

    Shows nothing of their content, so nothing is recorded.
    """
    record = access.session_for(request.user, record_id)
    cursor = Cursor.read(record, request.GET.get("after", ""))
    if cursor is None:
        return HttpResponse(status=STOP_POLLING)
    try:
        reader, _ = open_session(request, record, request.GET)
        written = reader.behind(record.session_id, cursor.position, NEWS_COUNTED)
    except StoreUnavailable:
        return HttpResponse(status=204)
    if not written:
        return HttpResponse(status=204)
    context = {"record": record, "news": NewItems(len(written), written[0])}
    status = STOP_POLLING if len(written) > NEWS_COUNTED else 200
    return render(request, "sessions/_timeline_news.html#link", context, status=status)
