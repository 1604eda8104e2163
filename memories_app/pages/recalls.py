"""Page of the memories used in a run, with later changes, and the link to the run in its session."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render

from memadmin.web.addresses import at_item
from memadmin.web.pages import operator_page
from memadmin.web.requests import OperatorRequest
from memories_app.pages import access, read_audit
from memories_app.recall.view_models import memories_in, neighbours, prompt_text
from sessions_app import access as session_access
from sessions_app.items import StoredItem
from sessions_app.masked_reader import reader_for
from sessions_app.models import SessionRecord
from sessions_app.stores.base import StoreUnavailable

NEAR = 20
"""Maximum of items of the same second among which the one after a recall is searched."""


@operator_page("memories_app.read_memory")
def recall(request: OperatorRequest, recall_id: UUID) -> HttpResponse:
    recall = access.recall_for(request.user, recall_id)
    shown = memories_in(recall)
    record = SessionRecord.objects.on_record().with_names().filter(pk__in=[recall.record_id]).first()
    context = {
        "recall": recall,
        "record": record,
        "memories": shown,
        "text": prompt_text(shown, recall.subject.label if recall.subject else ""),
        **neighbours(recall),
    }
    read_audit.recall_viewed(recall, [each.memory for each in shown if each.memory])
    return render(request, "memories/recall_detail.html", context)


@operator_page("memories_app.read_memory", "sessions_app.read_content")
def place(request: OperatorRequest, recall_id: UUID) -> HttpResponse:
    """Redirects to the first item after a recall, the result of the run."""
    recall = access.recall_for(request.user, recall_id)
    if recall.record_id is None:
        raise Http404("This recall has no session.")
    record = session_access.session_for(request.user, recall.record_id)
    try:
        found = reader_for(record.store).near(record.session_id, in_whole_seconds(recall.recalled_at), NEAR).items
    except StoreUnavailable as away:
        messages.warning(request, str(away))
        return redirect(record)
    next_one = next((item for item in found if is_written_after(item, recall.recalled_at)), None)
    if next_one is None:
        return redirect(f"{record.get_absolute_url()}?end")
    return redirect(at_item(record.get_absolute_url(), next_one.id))


def is_written_after(item: StoredItem, instant: datetime) -> bool:
    """Whether an item was written after an instant; with whole seconds where the store has no fractions."""
    if item.written_at is None:
        return False
    is_whole = item.written_at == in_whole_seconds(item.written_at)
    return item.written_at >= (in_whole_seconds(instant) if is_whole else instant)


def in_whole_seconds(instant: datetime) -> datetime:
    return instant.replace(microsecond=0)
