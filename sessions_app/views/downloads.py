"""Downloads of whole sessions, as JSON Lines or Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from uuid import UUID

from django.http.response import HttpResponseBase

from memadmin.batching import batched
from memadmin.web.downloads import as_download
from memadmin.web.pages import operator_page
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.items import StoredItem
from sessions_app.masked_reader import reader_for
from sessions_app.stores.base import StoreUnavailable
from sessions_app.timeline import build_timeline, to_markdown
from sessions_app.views import read_audit
from sessions_app.views.refusals import store_away

MARKDOWN_BATCH = 1_000


@operator_page("sessions_app.read_content")
@recently_authenticated(doing="download a session", file=True)
def export_jsonl(request: OperatorRequest, record_id: UUID) -> HttpResponseBase:
    """All items with masked values, one a line, oldest first; with `?decrypted` encrypted items are decrypted.

    The bytes of an item without values are the store's own. Only a line break, which JSON allows between its parts and
    one kind of hand-written row contains, becomes a space, so that a line stays an item. The name of the file states
    that it is masked, and no line of its own: every line is an item.
    """
    record = access.session_for(request.user, record_id)
    opens = "decrypted" in request.GET
    if opens and not access.may_open(request.user, record):
        raise access.NeedsGrant(record)
    try:
        items = begun(reader_for(record.store, opens=opens).every_item(record.session_id))
    except StoreUnavailable as away:
        return store_away(request, record, away)
    read_audit.download(request, record, "jsonl", is_decrypted=opens)
    lines = (stored.raw.replace("\r", " ").replace("\n", " ") + "\n" for stored in items)
    return as_download(lines, f"session-{record.pk}-masked.jsonl", "application/jsonl")


@operator_page("sessions_app.read_content")
@recently_authenticated(doing="download a session", file=True)
def export_markdown(request: OperatorRequest, record_id: UUID) -> HttpResponseBase:
    """All items as this user reads them, with masked values: encrypted items are decrypted under a grant."""
    record = access.session_for(request.user, record_id)
    opens = access.may_open(request.user, record)
    try:
        items = begun(reader_for(record.store, opens=opens).every_item(record.session_id))
    except StoreUnavailable as away:
        return store_away(request, record, away)
    read_audit.download(request, record, "markdown", is_decrypted=opens)
    return as_download(markdown_of(items), f"session-{record.pk}-masked.md", "text/markdown")


def begun(items: Iterator[StoredItem]) -> Iterator[StoredItem]:
    """The same items, with the first already read: an unavailable store raises before the response has begun."""
    first = list(islice(items, 1))
    return chain(first, items)


def markdown_of(items: Iterator[StoredItem]) -> Iterator[str]:
    """A session as Markdown, a batch of items at a time, so that a long session is never in memory as a whole.

    The last run of a batch waits for the next batch, so that no run is split.
    """
    batch: list[StoredItem] = []
    is_first = True
    for fresh in batched(items, MARKDOWN_BATCH):
        batch += fresh
        runs = build_timeline(batch, starts_session=is_first, ends_session=False).runs
        if len(runs) > 1:
            rest = next(place for place, stored in enumerate(batch) if stored.id == runs[-1].anchor)
            yield to_markdown(build_timeline(batch[:rest], starts_session=is_first, ends_session=False))
            batch, is_first = batch[rest:], False
    if batch:
        yield to_markdown(build_timeline(batch, starts_session=is_first, ends_session=True))
