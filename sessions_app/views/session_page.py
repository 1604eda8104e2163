"""Contents of a session page: the reader, the timeline of a window, and the parts around the timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from memadmin.audit.pages.recent_readers import readers_of
from memadmin.web.requests import OperatorRequest
from sessions_app import access
from sessions_app.branch_selection import Branches, branches_for
from sessions_app.extensions import Marks, beside_timeline, on_timeline
from sessions_app.forms import RevealForm
from sessions_app.items import Position
from sessions_app.masked_reader import Reader, expires_at, reader_for
from sessions_app.models import SessionRecord, SubjectKind
from sessions_app.registry import MAIN_STORE
from sessions_app.timeline import build_timeline
from sessions_app.views.find import SessionSearchResult
from sessions_app.views.findings import findings_of, next_finding
from sessions_app.views.window import MARKDOWN, Cursor, Window, fingerprint

NEWS_COUNTED = 50
"""New items are counted up to here; beyond it a page says "50+"."""


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items written since a page was opened: their number, and the id of the first one."""

    count: int
    item_id: str
    cap: int = NEWS_COUNTED


def open_session(request: OperatorRequest, record: SessionRecord, query: QueryDict) -> tuple[Reader, Branches]:
    """Reader of a session on the branch that the query asks for, and its branches. Raises StoreUnavailable."""
    branches = branches_for(record, asked=query.get("branch", ""), item_id=query.get("item", ""))
    return reader_for(record.store, opens=access.may_open(request.user, record), branch=branches.shown), branches


def window_context(
    request: OperatorRequest,
    record: SessionRecord,
    window: Window,
    found: SessionSearchResult | None,
    branches: Branches,
    *,
    form: str = "",
    newest: Position | None = None,
    seen: Position | None = None,
) -> dict[str, Any]:
    """Context of the timeline partial, for the first paint and every refresh. The queries of marks.

    `newest` is the position of the session's newest item, needed for pages that do not show it; `seen` that of the
    newest item that the reader saw, if later ones were written since.
    """
    page = window.page
    shown = build_timeline(page.items, starts_session=not page.has_earlier, ends_session=not page.has_later)
    decrypted = [item.seal for item in page.items if item.seal and item.seal.is_open]
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
    kept_query = f"&{urlencode(kept)}" if kept else ""
    earlier = Cursor("before", first).sign(record) if first and page.has_earlier else ""
    later = Cursor("after", last).sign(record) if last and page.has_later else ""
    if last and not page.has_later:
        newest = last
    seen = seen or newest
    unseen = [item.id for item in page.items if seen and item.position > seen]
    newest_text = Cursor("after", newest).sign(record) if newest else ""
    news_query = urlencode({"after": newest_text} | kept)
    return {
        "record": record,
        "page": page,
        "newest": newest_text,
        "seen": Cursor("after", seen).sign(record) if seen else "",
        "news": NewItems(len(unseen), unseen[0]) if unseen else None,
        "news_url": f"{reverse('sessions:news', args=[record.pk])}?{news_query}" if newest and page.has_later else "",
        "opens_at_end": window.opens_at_end,
        "page_cursor": Cursor("at", first).sign(record) if first else "",
        "decrypted": decrypted,
        "decrypted_with": ", ".join(sorted({seal.key_name for seal in decrypted})),
        "target": window.target,
        "find": found,
        "highlight": found and found.highlight,
        "as_markdown": form == MARKDOWN,
        "branches": branches,
        "kept_query": kept_query,
        "timeline": shown,
        "marks": Marks.joined(on_timeline.answers(request.user, record, page, shown)),
        "earlier": earlier,
        "later": later,
        "start_url": f"{address}?start{kept_query}",
        "end_url": f"{address}?end{kept_query}",
        "earlier_url": f"{address}?at={earlier}{kept_query}" if earlier else "",
        "later_url": f"{address}?at={later}{kept_query}" if later else "",
        "live_url": "" if page.has_later else f"{reverse('sessions:live', args=[record.pk])}?{live_query.urlencode()}",
    }


def around_timeline(
    request: OperatorRequest, record: SessionRecord, reader: Reader, window: Window
) -> dict[str, object]:
    """Context of the parts above and beside the timeline, not refreshed with it. One query, two for readers of the log,
    and those of panels."""
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
        "day": window.day,
        "readers": readers_of(record.pk) if request.user.has_perm("audit.view_auditevent") else None,
        "panels": beside_timeline.answers(request.user, record),
        "kinds": SubjectKind.choices,
    }


def form_link(query: QueryDict) -> str:
    """Query string of the same page in the other form: Markdown or plain text."""
    other = query.copy()
    if other.pop("form", None) != [MARKDOWN]:
        other["form"] = MARKDOWN
    return f"?{other.urlencode()}"
