"""Masked content as it is stored: an item, or a page of a session. Needs a reason, and is recorded first."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render

from memadmin.accounts.content_access import rules
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.audit_events import RevealReason
from sessions_app.forms import RevealForm
from sessions_app.masked_reader import reader_for
from sessions_app.masking import ItemView
from sessions_app.services.revealing import REVEAL, reveal_item, reveal_page
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.views import read_audit
from sessions_app.views.item import file_of, item_page
from sessions_app.views.refusals import store_away
from sessions_app.views.session_page import around_timeline, open_session, window_context
from sessions_app.views.window import choose_window, form_asked_for, is_whole


@operator_page("sessions_app.read_content", REVEAL, methods="POST")
@recently_authenticated(doing="reveal masked values in a session")
def reveal_session(request: OperatorRequest, record_id: UUID) -> HttpResponse:
    """Reveals one page of a session, once and after its event. Each further page is another request.

    An answer to a POST, so it is not reached by an address, by going back or by reloading.
    """
    record = access.session_for(request.user, record_id)
    reveal_form = RevealForm(request.POST)
    try:
        reader, branches = open_session(request, record, request.POST)
        window = choose_window(reader, record, request.POST)
        item_count = len(window.page.items) if is_whole(window.page) else reader.count(record.session_id)
        is_revealed = reveal_form.is_valid() and bool(window.page.items)
        if is_revealed:
            rules.opening(request, record.pk)
            reason = RevealReason(reveal_form.cleaned_data["reason"])
            page = reveal_page(
                record, window.page, by=request.user, reason=reason, opens=reader.opens, branch=branches.shown
            )
            window = replace(window, page=page)
    except StoreUnavailable as away:
        return store_away(request, record, away)
    context = {
        **window_context(request, record, window, None, branches, form=form_asked_for(request.POST)),
        **around_timeline(request, record, reader, window),
        "item_count": item_count,
        "problem": window.problem or " ".join(str(error) for error in reveal_form["reason"].errors),
    }
    if is_revealed:
        read_audit.decrypted(request, record, window.page.items)
        # Loading it anew would mask it, unseen.
        context |= {"is_revealed": True, "reveal_reason": reason, "live_url": ""}
        return render(request, "sessions/timeline.html", context, status=window.status)
    read_audit.session(request, record, window.page.items)
    return render(request, "sessions/timeline.html", context, status=422 if reveal_form.errors else window.status)


@operator_page("sessions_app.read_content", REVEAL, methods="POST")
@recently_authenticated(doing="reveal masked values in an item")
def reveal(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """Page of an item, or with `download` its file, as it is stored, once and after its event.

    An answer to a POST, so it is not reached by an address, by going back or by reloading.
    """
    record = access.session_for(request.user, record_id)
    form = RevealForm(request.POST)
    opens = access.may_open(request.user, record)
    try:
        if not form.is_valid():
            view = reader_for(record.store, opens=opens).item_view(record.session_id, item_id)
            return item_page(request, record, view, form)
        rules.opening(request, record.pk)
        reason = RevealReason(form.cleaned_data["reason"])
        as_file = "download" in request.POST
        stored = reveal_item(record, item_id, by=request.user, reason=reason, opens=opens, as_file=as_file)
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return store_away(request, record, away)
    read_audit.decrypted(request, record, [stored])
    if as_file:
        return file_of(stored.raw, f"session-{record.pk}-item-{stored.id}.json", "application/json")
    return item_page(request, record, ItemView.unmasked(stored), None)
