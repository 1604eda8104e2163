"""Download of the list of memories as CSV, under its filters; with their texts only if these are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice

from django.contrib import messages
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from memadmin import audit
from memadmin.accounts.content_access import rules
from memadmin.counting import count_up_to
from memadmin.web.downloads import MOST_ROWS, in_utc, table_download
from memadmin.web.pages import operator_page
from memadmin.web.paging import in_batches
from memadmin.web.reauth import recently_authenticated
from memadmin.web.requests import OperatorRequest
from memories_app import audit_events
from memories_app.models import Memory
from memories_app.pages import view_models
from memories_app.pages.filters import MemoryFilter
from sessions_app.services.revealing import REVEAL

BATCH = 1_000

COLUMNS = (
    *("id", "kind", "status", "source", "confidence", "subject", "subject id", "agents", "version"),
    *("proposed (UTC)", "decided (UTC)", "valid until (UTC)"),
)
STATEMENT = ("statement, masked",)


@operator_page("memories_app.read_memory")
@recently_authenticated(doing="download a list", file=True)
def memory_table(request: OperatorRequest) -> HttpResponseBase:
    """The memories of the list under its filters. With `?statements=1` also their texts, masked as in the list: these
    are content, and need a purpose.
    """
    filters = MemoryFilter(request.GET, is_masked=not request.user.has_perm(REVEAL))
    address = f"{reverse('memories:list')}?{filters.query_string()}"
    if filters.problems:
        return redirect(address)
    if filters.searched:
        messages.warning(request, "A search for words cannot be downloaded. Remove it and keep the other filters.")
        return redirect(address)
    has_texts = "statements" in request.GET
    purpose = rules.purpose_of(request) if has_texts else ""
    found = filters.memories().defer("embedding", "words", "data")
    count = count_up_to(found, MOST_ROWS)
    if count > MOST_ROWS:
        messages.warning(request, f"More than {MOST_ROWS:,} memories match. Add a filter.")
        return redirect(address)
    audit.before_showing(
        audit_events.MEMORY_TABLE_EXPORTED,
        subject=filters.active.get("subject"),
        counters={"memories": count, "statements": int(has_texts)},
        reason_code=purpose,
        details={"filter": filters.query_string()},
    )
    if not has_texts:
        found = found.defer("embedding", "words", "data", "statement")
    rows = chain.from_iterable(memory_rows(batch, has_texts=has_texts) for batch in in_batches(found, BATCH))
    return table_download(COLUMNS + STATEMENT * has_texts, islice(rows, count), "memories")


def memory_rows(memories: Iterable[Memory], *, has_texts: bool) -> Iterator[tuple[object, ...]]:
    """One query, for the ids of their subjects."""
    shown = list(memories)
    labels = view_models.subject_labels(shown)
    statements = [each.statement for each in view_models.shown_memories(shown)] if has_texts else []
    for place, memory in enumerate(shown):
        yield (
            memory.pk,
            memory.kind,
            memory.status,
            memory.source,
            memory.confidence,
            labels.get(memory.subject_id) if memory.subject_id else "shared by all",
            memory.subject_id,
            ", ".join(memory.agents),
            memory.version,
            in_utc(memory.proposed_at),
            in_utc(memory.decided_at),
            in_utc(memory.valid_until),
            *([statements[place]] if has_texts else ()),
        )
