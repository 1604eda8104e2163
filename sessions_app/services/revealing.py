"""Showing masked values: an action of a user, for a reason, logged before anything is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.contrib.auth.models import User

from memadmin import audit
from sessions_app.audit_events import SESSION_REVEALED, RevealReason
from sessions_app.items import ItemPage, StoredItem
from sessions_app.masking import ItemView, Masker, shortened_or_hidden
from sessions_app.models import SessionRecord
from sessions_app.stores.base import Branch
from sessions_app.stores.sealed import sealed_backend_for

REVEAL = "sessions_app.reveal_personal_data"


def reveal_item(
    record: SessionRecord, item_id: str, *, by: User, reason: RevealReason, opens: bool = False, as_file: bool = False
) -> StoredItem:
    """One item as it is stored, for its page or for a file. The event has the number of values in it that are masked
    for others: for a page in the part that it shows and a little behind it, for a file in all of it.

    `opens` if the user may read encrypted items of the session: then it is the envelope's content.
    The event is committed before this returns. Raises UnknownItem, StoreUnavailable, and audit.AuditUnavailable when
    the log cannot be written: then nothing may be shown.
    """
    stored = sealed_backend_for(record.store, opens=opens).item(record.session_id, item_id)
    masked = Masker.of_one_item(as_file=True).file_item(stored) if as_file else ItemView.masked(stored).item
    note_revealed(record, [masked], by=by, reason=reason)
    return stored


def reveal_page(
    record: SessionRecord,
    page: ItemPage,
    *,
    by: User,
    reason: RevealReason,
    opens: bool = False,
    branch: Branch | None = None,
) -> ItemPage:
    """The items of a page with masked values, as they are stored now, as far as the page shows them; one event has
    their number and that of the values.

    `opens`, and the exceptions, as above.
    """
    backend = sealed_backend_for(record.store, opens=opens, branch=branch)
    stored = backend.page_at(record.session_id, page.items[0].position, len(page.items))
    masker = Masker()
    note_revealed(record, [masker.shown_item(item) for item in stored.items], by=by, reason=reason)
    return replace(stored, items=[shortened_or_hidden(item) for item in stored.items])


def note_revealed(record: SessionRecord, masked: Sequence[StoredItem], *, by: User, reason: RevealReason) -> None:
    audit.before_showing(
        SESSION_REVEALED,
        by=by,
        target=record,
        subject=record.subject,
        reason_code=reason.value,
        counters={"items": len(masked), "values": sum(item.masked_count for item in masked)},
    )
