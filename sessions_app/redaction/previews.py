"""Preview of a redaction: how often a text occurs, and where, before it is removed. Shows no content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

from django.contrib.auth.models import User

from memadmin import audit
from sessions_app import audit_events
from sessions_app.encryption import sealing_of
from sessions_app.models import SessionRecord, Subject
from sessions_app.redaction import TextToRedact
from sessions_app.redaction.sessions import MOST_NAMED, LeftReason, address_of, count_occurrences
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionUnreadable, StoreUnavailable

PREVIEW_SECONDS = 5.0
"""Time limit of a preview on a page; sessions beyond it are searched by the redaction itself."""

SESSIONS_LISTED = 25


@dataclass(frozen=True, slots=True)
class FoundIn:
    record: SessionRecord
    items: int
    places: int


@dataclass(frozen=True, slots=True)
class LeftIn:
    sentence: str
    store: str
    count: int


@dataclass
class RedactionPreview:
    items: int = 0
    places: int = 0
    kept: int = 0
    compactions: int = 0
    """Blocks in the sessions where it was found."""
    seen: int = 0
    """Searched sessions."""
    found_in: list[FoundIn] = field(default_factory=list)
    """At most SESSIONS_LISTED of them."""
    found_sessions: int = 0
    unseen: int = 0
    """Sessions that this user may not read; they are redacted all the same."""
    is_cut_short: bool = False
    """True if time was over before all sessions were searched."""
    cannot: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of items that cannot be redacted, as far as known, by reason and store."""

    @property
    def left(self) -> list[LeftIn]:
        return [LeftIn(LeftReason(why).label, store, count) for (why, store), count in sorted(self.cannot.items())]


def preview_redaction(
    records: Iterable[SessionRecord],
    target_text: TextToRedact | None,
    *,
    by: User | None,
    granted: Collection[UUID],
    item_id: str = "",
    subject: Subject | None = None,
    seconds: float | None = PREVIEW_SECONDS,
) -> RedactionPreview:
    """Searches sessions, one by one, and returns how often the text is in them.

    Without a text everything in the one item counts. `granted` are locked or encrypted sessions that may be searched.
    Raises UnknownItem if the one item is gone.
    """
    preview, began = RedactionPreview(), monotonic()
    away: set[str] = set()
    for record in records:
        if seconds is not None and monotonic() - began > seconds:
            preview.is_cut_short = True
            break
        is_granted = by is None or record.pk in granted
        if not is_granted and (record.is_locked or record.is_encrypted):
            preview.unseen += 1
        elif record.store.name in away:
            preview.cannot[LeftReason.AWAY.value, record.store.name] += 1
        else:
            try:
                add_occurrences(record, target_text, preview, item_id)
            except SessionUnreadable:
                preview.cannot[LeftReason.UNREADABLE.value, address_of(record)] += 1
            except StoreUnavailable:
                away.add(record.store.name)
                preview.cannot[LeftReason.AWAY.value, record.store.name] += 1
    audit.record_alone(
        audit_events.REDACTION_PREVIEWED,
        by=by,
        subject=subject,
        shown=[found.record for found in preview.found_in],
        counters={"sessions": preview.found_sessions, "items": preview.items, "places": preview.places},
    )
    return preview


def add_occurrences(
    record: SessionRecord, target_text: TextToRedact | None, preview: RedactionPreview, item_id: str
) -> None:
    occurrences = count_occurrences(
        record, target_text, sealing_of(record.store).of_session(record.session_id), item_id=item_id
    )
    preview.seen += 1
    preview.kept += occurrences.kept
    if occurrences.sealed:
        preview.cannot[LeftReason.SEALED.value, record.store.name] += occurrences.sealed
    for id_too_deep in occurrences.too_deep[:MOST_NAMED]:
        preview.cannot[LeftReason.TOO_DEEP.value, address_of(record, id_too_deep)] += 1
    is_block = bool(item_id and occurrences.compactions)
    if not occurrences.places and not is_block:
        return
    needed = Capability.ERASE_ITEMS if is_block else Capability.REPLACE_ITEMS
    if needed not in backend_for(record.store).capabilities:
        preview.cannot[LeftReason.CANNOT.value, record.store.name] += 1
        return
    preview.items += occurrences.items or is_block
    preview.places += occurrences.places
    preview.compactions += occurrences.compactions
    preview.found_sessions += 1
    if len(preview.found_in) < SESSIONS_LISTED:
        preview.found_in.append(FoundIn(record, occurrences.items, occurrences.places))
