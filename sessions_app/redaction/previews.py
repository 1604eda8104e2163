"""Preview of a redaction: how often a text occurs, and the first places with their surroundings."""

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
from sessions_app.masking import Masker
from sessions_app.models import SessionRecord, Subject
from sessions_app.redaction import Redacted, TextToRedact
from sessions_app.redaction.occurrences import count_occurrences
from sessions_app.redaction.outcome import MOST_NAMED, LeftReason, address_of
from sessions_app.redaction.places import PlaceContext, contexts_of
from sessions_app.redaction.shown import MARK_CHARACTERS, ShownItems, mark_of
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionUnreadable, StoreUnavailable

PREVIEW_SECONDS = 5.0
"""Time limit of a preview on a page; sessions beyond it are searched by the redaction itself."""

SESSIONS_LISTED = 25

PLACES_SHOWN = 50
"""Places shown with their surroundings; the others are counted."""

TYPED_ABOVE = 10
"""Places above which a person types their number before the redaction is requested."""


@dataclass(frozen=True, slots=True)
class FoundIn:
    record: SessionRecord
    items: int
    places: int


@dataclass(frozen=True, slots=True)
class ShownPlace:
    """One place on the page of a preview."""

    record: SessionRecord
    item_id: str
    mark: str
    """Changes with the item."""
    context: PlaceContext


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
    searched: int = 0
    """Sessions that were looked at, also those that could not be searched."""
    contexts: list[ShownPlace] = field(default_factory=list)
    """At most PLACES_SHOWN."""
    shown: ShownItems = field(default_factory=ShownItems)
    changed: int = 0
    """Items with the text that the requester of a redaction was not shown; counted while it awaits approval."""

    @property
    def more_places(self) -> int:
        """Places that are counted and not shown."""
        return max(self.places - len(self.contexts), 0)

    @property
    def has_unseen(self) -> bool:
        """True if more is redacted than the preview could search."""
        return bool(self.unseen) or self.is_cut_short

    def size(self, *, takes_compactions: bool) -> int:
        """Number of places, each removed compaction block included."""
        return max(self.places + (self.compactions if takes_compactions else 0), self.items)

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
    purpose: str = "",
) -> RedactionPreview:
    """Searches sessions as `find_places` does, and records what is shown. Raises UnknownItem."""
    preview = find_places(records, target_text, by=by, granted=granted, item_id=item_id, seconds=seconds)
    record_preview(preview, by=by, subject=subject, purpose=purpose)
    return preview


def find_places(
    records: Iterable[SessionRecord],
    target_text: TextToRedact | None,
    *,
    by: User | None,
    granted: Collection[UUID],
    item_id: str = "",
    seconds: float | None = PREVIEW_SECONDS,
    most: int | None = None,
    only: ShownItems | None = None,
) -> RedactionPreview:
    """Searches sessions, one by one, and returns how often the text is in them, with the first places.

    Without a text everything in the one item counts. `granted` are locked or encrypted sessions that may be searched.
    At most `most` sessions are searched; others count as not searched for lack of time. Items that are not in `only`
    are counted as changed. Nothing is recorded: whoever shows the result records it. Raises UnknownItem if the one item
    is gone.
    """
    preview, began, masker = RedactionPreview(), monotonic(), Masker()
    away: set[str] = set()
    for record in records:
        if preview.searched == most or (seconds is not None and monotonic() - began > seconds):
            preview.is_cut_short = preview.shown.is_rest_meant = True
            break
        preview.searched += 1
        is_granted = by is None or record.pk in granted
        if not is_granted and (record.is_locked or record.is_encrypted):
            preview.unseen += 1
            preview.shown.unseen.append(str(record.pk))
        elif record.store.name in away:
            preview.cannot[LeftReason.AWAY.value, record.store.name] += 1
        else:
            try:
                add_occurrences(record, target_text, preview, item_id, masker, only)
            except SessionUnreadable:
                preview.cannot[LeftReason.UNREADABLE.value, address_of(record)] += 1
            except StoreUnavailable:
                away.add(record.store.name)
                preview.cannot[LeftReason.AWAY.value, record.store.name] += 1
    return preview


def record_preview(preview: RedactionPreview, *, by: User | None, subject: Subject | None, purpose: str = "") -> None:
    """Commits the event of a preview that is about to be shown. Raises AuditUnavailable."""
    audit.before_showing(
        audit_events.REDACTION_PREVIEWED,
        by=by,
        subject=subject,
        shown={found.record.pk for found in preview.found_in} | {each.record.pk for each in preview.contexts},
        counters={"sessions": preview.found_sessions, "items": preview.items, "places": preview.places},
        reason_code=purpose,
    )


def add_occurrences(
    record: SessionRecord,
    target_text: TextToRedact | None,
    preview: RedactionPreview,
    item_id: str,
    masker: Masker,
    only: ShownItems | None,
) -> None:
    marks: list[str] = []
    contexts: list[ShownPlace] = []
    wanted = only.marks_in(record.pk) if only else None
    room = PLACES_SHOWN - len(preview.contexts)

    def visit(item_id: str, text: str, redacted: Redacted) -> int:
        mark = mark_of(text)
        marks.append(mark)
        if wanted is not None and mark not in wanted:
            preview.changed += bool(redacted.places)
        else:
            contexts.extend(
                ShownPlace(record, item_id, mark[:MARK_CHARACTERS], context)
                for context in contexts_of(redacted.shown, masker)
            )
        return room - len(contexts)

    occurrences = count_occurrences(
        record,
        target_text,
        sealing_of(record.store).of_session(record.session_id),
        item_id=item_id,
        visit=visit,
        show=room,
    )
    preview.seen += 1
    preview.shown.of_sessions[str(record.pk)] = []
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
    preview.shown.of_sessions[str(record.pk)] = marks
    preview.contexts += contexts
    preview.items += occurrences.items or is_block
    preview.places += occurrences.places
    preview.compactions += occurrences.compactions
    preview.found_sessions += 1
    if len(preview.found_in) < SESSIONS_LISTED:
        preview.found_in.append(FoundIn(record, occurrences.items, occurrences.places))
