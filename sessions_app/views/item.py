"""Pages and downloads of one stored item."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render

from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.extensions import beside_item
from sessions_app.forms import RevealForm
from sessions_app.masked_reader import reader_for
from sessions_app.masking import RAW_CHARACTERS, ItemView
from sessions_app.models import SessionRecord
from sessions_app.services.revealing import REVEAL
from sessions_app.stores.base import StoreUnavailable, UnknownItem
from sessions_app.timeline import build_timeline
from sessions_app.views import read_audit
from sessions_app.views.refusals import store_away

MOST_PART_DIGITS = 10


@operator_page("sessions_app.read_content")
def item(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """Page of one item with masked values; with `?download` its file."""
    if "download" in request.GET:
        return item_file(request, record_id, item_id)
    record = access.session_for(request.user, record_id)
    opens = access.may_open(request.user, record)
    try:
        view = reader_for(record.store, opens=opens).item_view(
            record.session_id, item_id, first_part(request.GET.get("part", ""))
        )
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return store_away(request, record, away)
    read_audit.item(request, record, view.item, as_file=False)
    return item_page(request, record, view, RevealForm())


@recently_authenticated(doing="download an item", file=True)
def item_file(request: OperatorRequest, record_id: UUID, item_id: str) -> HttpResponse:
    """The stored item as a file, with masked values; with `?decrypted` an encrypted item is decrypted."""
    record = access.session_for(request.user, record_id)
    opens = "decrypted" in request.GET
    if opens and not access.may_open(request.user, record):
        raise access.NeedsGrant(record)
    try:
        stored = reader_for(record.store, opens=opens).item(record.session_id, item_id)
    except UnknownItem as unknown:
        raise Http404("No such item.") from unknown
    except StoreUnavailable as away:
        return store_away(request, record, away)
    read_audit.item(request, record, stored, as_file=True)
    mark = "-masked" if stored.masked_count else ""
    return file_of(stored.raw, f"session-{record.pk}-item-{stored.id}{mark}.json", "application/json")


def item_page(request: OperatorRequest, record: SessionRecord, view: ItemView, form: RevealForm | None) -> HttpResponse:
    """Page of an item: masked, with the form to reveal it; without a form it is revealed."""
    stored, envelope = view.item, ""
    if stored.seal and stored.seal.is_open:
        envelope = reader_for(record.store).item_view(record.session_id, stored.id).raw
    context = {
        "record": record,
        "item": stored,
        "envelope": envelope,
        "raw": view.raw[:RAW_CHARACTERS],
        "is_cut": view.is_cut,
        "timeline": build_timeline([stored], starts_session=False, ends_session=False),
        "form": form,
        "is_revealed": form is None,
        "may_reveal": request.user.has_perm(REVEAL),
        "panels": beside_item.answers(request.user, record, stored.id),
    }
    return render(request, "sessions/item.html", context, status=422 if form and form.errors else 200)


def first_part(text: str) -> int:
    """Index of the first part of the item that its page shows; 0 for anything that is no index."""
    return int(text) if text.isdecimal() and len(text) < MOST_PART_DIGITS else 0


def file_of(text: str, name: str, content_type: str) -> HttpResponse:
    response = HttpResponse(text.encode(errors="surrogatepass"), content_type=f"{content_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
