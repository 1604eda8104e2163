"""One session on screen: its timeline in pages of 100 items, live at its open end."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import reverse

from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.branch_selection import Branches, branches_for
from sessions_app.extensions import Marks, beside_timeline, on_timeline
from sessions_app.forms import RevealForm
from sessions_app.masked_reader import Reader, expires_at, reader_for
from sessions_app.models import SessionRecord, SubjectKind
from sessions_app.registry import MAIN_STORE
from sessions_app.search.remembered import SearchGone
from sessions_app.services.inspection import inspect_again
from sessions_app.stores.base import StoreUnavailable
from sessions_app.timeline import build_timeline
from sessions_app.views import read_audit
from sessions_app.views.answers import store_away
from sessions_app.views.find import SessionSearchResult, search_shown
from sessions_app.views.findings import findings_of, next_finding
from sessions_app.views.window import MARKDOWN, Cursor, Window, choose_window, fingerprint, form_asked_for, is_whole

LIVE_ITEMS = 300
"""A page left open on the end of a session grows up to here; then it offers the next page."""


@operator_page("sessions_app.read_content")
def timeline(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    record = access.session_for(request.user, record_id)
    try:
        reader, branches = open_session(request, record, request.GET)
        window = choose_window(reader, record, request.GET)
        item_count = len(window.page.items) if is_whole(window.page) else reader.count(record.session_id)
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
        **window_context(request, record, window, found, branches, form=form_asked_for(request.GET)),
        **around_timeline(request, record, reader, window),
        "item_count": item_count,
        "problem": window.problem,
    }
    read_audit.session(request, record, window.page.items)
    return render(request, "sessions/timeline.html", context, status=window.status)


def open_session(request: OperatorRequest, record: SessionRecord, query: QueryDict) -> tuple[Reader, Branches]:
    """What a page of a session reads from, on the branch that its address asks for. Raises StoreUnavailable."""
    branches = branches_for(record, asked=query.get("branch", ""), item_id=query.get("item", ""))
    return reader_for(record.store, opens=access.may_open(request.user, record), branch=branches.shown), branches


def around_timeline(
    request: OperatorRequest, record: SessionRecord, reader: Reader, window: Window
) -> dict[str, object]:
    """What stands above and beside a timeline, and is not refreshed with it. One query, and those of panels."""
    findings = findings_of(record)
    return {
        "other_form": form_link(request.GET),
        "findings": findings,
        "may_open": reader.opens,
        "next_finding": next_finding(findings, window.target),
        "has_raw_edits": record.store.name == MAIN_STORE,
        "masked_values": sum(item.masked_count for item in window.page.items),
        "reveal_form": RevealForm(),
        "expires_at": expires_at(record),
        "panels": beside_timeline.answers(request.user, record),
        "kinds": SubjectKind.choices,
    }


@operator_page("sessions_app.read_content")
def live(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """The open end of a session again, if anything in it changed: written, popped, compacted or redacted.

    The whole window is compared and not just its last item, because a run can commit items that belong before
    others that were already visible. 204 tells htmx to leave the page alone.
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
    context = window_context(request, record, window, found, branches, form=form_asked_for(request.GET))
    return render(request, "sessions/timeline.html#timeline", context)


def form_link(query: QueryDict) -> str:
    """The same page in the other form, as a query string."""
    other = query.copy()
    if other.pop("form", None) != [MARKDOWN]:
        other["form"] = MARKDOWN
    return f"?{other.urlencode()}"


def window_context(
    request: OperatorRequest,
    record: SessionRecord,
    window: Window,
    found: SessionSearchResult | None,
    branches: Branches,
    *,
    form: str = "",
) -> dict[str, Any]:
    """What the timeline partial needs, on the first paint and on every refresh. The queries of marks."""
    page = window.page
    shown = build_timeline(page.items, starts_session=not page.has_earlier, ends_session=not page.has_later)
    opened = [item.seal for item in page.items if item.seal and item.seal.is_open]
    first, last = (page.items[0].position, page.items[-1].position) if page.items else (None, None)
    address = reverse("sessions:timeline", args=[record.pk])
    live_query = QueryDict(mutable=True)
    live_query["state"] = fingerprint(page.items)
    if first and page.has_earlier:
        live_query["from"] = Cursor("at", first).sign(record)
    if window.target:
        live_query["item"] = window.target
    if found:
        live_query["find"] = found.search_id
    kept = {name: value for name, value in (("form", form), ("branch", branches.asked)) if value}
    live_query.update(kept)
    onward = f"&{urlencode(kept)}" if kept else ""
    earlier = Cursor("before", first).sign(record) if first and page.has_earlier else ""
    later = Cursor("after", last).sign(record) if last and page.has_later else ""
    return {
        "record": record,
        "page": page,
        "here": Cursor("at", first).sign(record) if first else "",
        "opened": opened,
        "opened_with": ", ".join(sorted({seal.key_name for seal in opened})),
        "target": window.target,
        "find": found,
        "highlight": found and found.highlight,
        "as_markdown": form == MARKDOWN,
        "branches": branches,
        "onward": onward,
        "timeline": shown,
        "marks": Marks.joined(on_timeline.answers(request.user, record, page, shown)),
        "earlier": earlier,
        "later": later,
        "earlier_url": f"{address}?at={earlier}{onward}" if earlier else "",
        "later_url": f"{address}?at={later}{onward}" if later else "",
        "live_url": "" if page.has_later else f"{reverse('sessions:live', args=[record.pk])}?{live_query.urlencode()}",
    }
