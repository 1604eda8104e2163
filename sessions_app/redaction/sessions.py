"""Redaction of one session: searched, changed under its store's locks, and replayed as proof.

Sessions without the text are not locked. Items that cannot be changed are counted by reason; none is skipped silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import DataError

from memadmin import audit
from memadmin.runs.engine import Lease
from sessions_app import audit_events
from sessions_app.encryption import SessionSeals, sealing_of
from sessions_app.encryption.envelope_text import DecryptedItem, decrypt_for_rewrite
from sessions_app.items import Position, StoredItem
from sessions_app.models import Redaction, SessionRecord
from sessions_app.redaction import NestedTooDeep, TextToRedact
from sessions_app.redaction.occurrences import OccurrenceCount, count_occurrences, redacted_item, type_of, with_text
from sessions_app.redaction.outcome import MOST_NAMED, LeftReason, RedactionOutcome, address_of
from sessions_app.redaction.replay import Replay, keeps_its_place
from sessions_app.redaction.shown import ShownItems, mark_of
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion
from sessions_app.services.inspection import inspect_again
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy, SessionUnreadable, StoreUnavailable, UnknownItem
from sessions_app.stores.rewriting import ITEMS_A_CHUNK, CannotRewrite, Changes, Rewriter, rewriter_for

ROUNDS = 3
"""Number of times that items which agents wrote, or held, meanwhile are tried again."""


@dataclass
class Chunk:
    """Decision about some neighbouring items."""

    texts: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    places: int = 0
    left: Counter[LeftReason] = field(default_factory=Counter)
    was_found: bool = False
    """True if the text was in an item so far: a later compaction may contain it."""
    type_before: str = ""

    def begin(self, was_found: bool, type_before: str) -> None:
        self.texts, self.gone, self.places, self.left = {}, set(), 0, Counter()
        self.was_found, self.type_before = was_found, type_before


def redact_session(
    lease: Lease,
    redaction: Redaction,
    record: SessionRecord,
    target_text: TextToRedact | None,
    *,
    is_same: Callable[[Redaction, str], bool],
    shown: ShownItems | None = None,
) -> RedactionOutcome:
    """Redacts one session and returns the numbers, which the caller adds to the run. Raises what the lease raises.

    Only items of `shown`, if it is given; others with the text are left and reported.
    """
    outcome = RedactionOutcome(sessions=1)
    seals = sealing_of(record.store).of_session(record.session_id)
    marks = shown.marks_in(record.pk) if shown else None
    work = _SessionWork(lease, redaction, record, target_text, outcome, seals, is_same, marks)
    try:
        work.do()
    except DeletionRefused:
        outcome.leave(LeftReason.HELD, record.store.name)
    except SessionBusy:
        outcome.leave(LeftReason.BUSY, record.store.name)
    except SessionUnreadable:
        outcome.leave(LeftReason.UNREADABLE, address_of(record))
    except StoreUnavailable:
        outcome.leave(LeftReason.AWAY, record.store.name)
    except CannotRewrite:
        outcome.leave(LeftReason.CANNOT, record.store.name)
    except DataError:
        # A hand-made jsonb column: Python reads a number beyond all floats as infinity, which is no JSON.
        outcome.leave(LeftReason.REFUSED, address_of(record))
    return outcome


def replay_of(record: SessionRecord, seals: SessionSeals, keep: Callable[[], None]) -> Replay:
    """The whole history, as an agent reads it, without items that cannot be decrypted. Raises StoreUnavailable."""
    replay = Replay()
    for item in backend_for(record.store).every_item(record.session_id):
        keep()
        if inside := decrypt_for_rewrite(item, seals):
            replay.see(with_text(item, inside.text))
    return replay


@dataclass
class _SessionWork:
    lease: Lease
    redaction: Redaction
    record: SessionRecord
    target_text: TextToRedact | None
    outcome: RedactionOutcome
    seals: SessionSeals
    is_same: Callable[[Redaction, str], bool]
    marks: frozenset[str] | None = None
    """Marks of the items that the preview showed; None if all items are meant."""
    was_found: bool = False
    type_before: str = ""
    has_changed: bool = False
    rewritten: set[str] = field(default_factory=set)
    """Ids of items with changed text."""
    named: set[str] = field(default_factory=set)
    """Ids of items that are nested too deeply."""

    def do(self) -> None:
        if self.target_text and any(self.target_text.is_in(label) for label in self.record.labels):
            self.leave(LeftReason.LABEL)
        one_item = self.redaction.item_id
        try:
            occurrences = self.count_now()
        except UnknownItem:
            if not self.is_resumed:
                self.leave(LeftReason.GONE)
                return
            occurrences = OccurrenceCount()  # a block that was removed before the interruption
        if occurrences.sealed:
            self.leave(LeftReason.SEALED, occurrences.sealed)
        self.name_too_deep(occurrences)
        self.outcome.kept += occurrences.kept
        takes_block = bool(one_item and occurrences.compactions and not self.target_text)
        if not occurrences.places and not takes_block:
            if self.is_resumed:
                self.note_done(self.count_before(occurrences), occurrences)
                self.check_replay(Replay())
            return
        occurrences = self.count_before(occurrences)
        needed = [Capability.REPLACE_ITEMS, *([Capability.ERASE_ITEMS] if takes_block else [])]
        rewriter = rewriter_for(self.record.store, *needed)
        before = replay_of(self.record, self.seals, self.lease.keep)
        for _ in range(ROUNDS):
            left = self.change_once(rewriter)
            after = self.count_after()
            if one_item or after.items <= left[LeftReason.UNFIT] + left[LeftReason.NOT_SHOWN]:
                break
        else:
            self.leave(LeftReason.WRITTEN_AGAIN, after.items)
        for why, count in left.items():
            self.leave(why, count)
        self.name_too_deep(after)
        if one_item and after.items and not left:
            self.leave(LeftReason.CHANGED)
        self.note_done(occurrences, after)
        self.check_replay(before)

    def count_now(self) -> OccurrenceCount:
        """Occurrences in the session as it is now. Raises StoreUnavailable and UnknownItem."""
        return count_occurrences(
            self.record, self.target_text, self.seals, item_id=self.redaction.item_id, keep=self.lease.keep
        )

    @property
    def is_resumed(self) -> bool:
        """True if this session was started before, by this process or another, and not finished."""
        return bool(self.lease.run.cursor.get("session") == str(self.record.pk))

    def count_before(self, occurrences: OccurrenceCount) -> OccurrenceCount:
        """Occurrences in the session before anything was changed in it, also if the work was interrupted since."""
        if self.is_resumed:
            self.has_changed = True
            return OccurrenceCount(**self.lease.run.cursor["look"])
        with self.lease.chunk() as run:
            run.cursor |= {"session": str(self.record.pk), "look": vars(occurrences)}
        return occurrences

    def change_once(self, rewriter: Rewriter) -> Counter[LeftReason]:
        """Processes the session, or its one item. Returns the reasons for items that cannot be changed."""
        self.was_found, self.type_before = False, ""
        left: Counter[LeftReason] = Counter()
        place = self.start()
        while True:
            chunk = Chunk()

            def decide(items: Sequence[StoredItem], chunk: Chunk = chunk) -> Changes:
                return self.decide(items, chunk)

            def before_writing(changes: Changes, chunk: Chunk = chunk) -> None:
                self.record_change(chunk)

            with self.lease.chunk():
                place = rewriter.change_items(
                    self.record.session_id,
                    place,
                    decide=decide,
                    before_writing=before_writing,
                    limit=1 if self.redaction.item_id else ITEMS_A_CHUNK,
                )
            self.was_found, self.type_before = chunk.was_found, chunk.type_before
            self.has_changed |= bool(chunk.texts or chunk.gone)
            self.rewritten |= chunk.texts.keys()
            left += chunk.left
            if place is None or self.redaction.item_id:
                return left

    def count_after(self) -> OccurrenceCount:
        try:
            return self.count_now()
        except UnknownItem:  # a block that was removed
            return OccurrenceCount()

    def note_done(self, before: OccurrenceCount, after: OccurrenceCount) -> None:
        """Counts by the current content of the store, not by what was sent to it."""
        self.outcome.items += max(before.items - after.items, 0)
        self.outcome.places += max(before.places - after.places, 0)
        self.outcome.taken_out += max(before.compactions - after.compactions, 0)
        self.outcome.changed += self.has_changed

    def leave(self, why: LeftReason, count: int = 1) -> None:
        self.outcome.leave(why, self.record.store.name, count)

    def name_too_deep(self, occurrences: OccurrenceCount) -> None:
        """Names each item that is nested too deeply, once; the others beyond MOST_NAMED are counted."""
        for item_id in occurrences.too_deep:
            if item_id not in self.named:
                is_named = len(self.named) < MOST_NAMED
                self.named.add(item_id)
                place = address_of(self.record, item_id) if is_named else address_of(self.record)
                self.outcome.leave(LeftReason.TOO_DEEP, place)

    def start(self) -> Position | None:
        """Position of the first possible change."""
        if not self.redaction.item_id:
            return None
        item = backend_for(self.record.store).item(self.record.session_id, self.redaction.item_id)
        return item.position.previous()

    def decide(self, items: Sequence[StoredItem], chunk: Chunk) -> Changes:
        """May be called with the same items again, after it gave way to an agent: so it starts with nothing."""
        chunk.begin(self.was_found, self.type_before)
        for item in items:
            if self.redaction.item_id and item.id != self.redaction.item_id:
                continue
            inside = decrypt_for_rewrite(item, self.seals)
            if inside is None:
                continue
            if self.redaction.item_id and not self.is_same(self.redaction, item.raw):
                chunk.left[LeftReason.CHANGED] += 1
                continue
            item_type = type_of(item, inside.text)
            if item_type == "compaction":
                self.decide_on_block(item, inside.text, chunk)
            else:
                self.decide_on_item(inside, item_type, chunk)
            chunk.type_before = item_type
        return Changes(texts=chunk.texts, gone=frozenset(chunk.gone))

    def decide_on_item(self, inside: DecryptedItem, item_type: str, chunk: Chunk) -> None:
        try:
            redacted = redacted_item(inside.text, self.target_text)
        except NestedTooDeep:
            # Named by the search, which comes before and after all changes.
            chunk.was_found = True
            return
        if redacted.places and not self.was_shown(inside.text):
            chunk.left[LeftReason.NOT_SHOWN] += 1
        elif redacted.places:
            chunk.was_found = True
            if keeps_its_place(inside.text, redacted.raw):
                chunk.texts[inside.item.id] = inside.stored_with(redacted.raw)
                chunk.places += redacted.places
            else:
                chunk.left[LeftReason.UNFIT] += 1
        if chunk.was_found and item_type == "reasoning" and "encrypted_content" in redacted.raw:
            chunk.left[LeftReason.KEPT_REASONING] += 1

    def was_shown(self, text: str) -> bool:
        """Whether the preview showed an item with this text, or all items are meant."""
        return self.marks is None or mark_of(text) in self.marks

    def decide_on_block(self, item: StoredItem, text: str, chunk: Chunk) -> None:
        """A compaction block is removed whole or not at all: by itself if it is the item, else on request.

        Reasoning belongs to the item behind it, and a provider refuses it without.
        """
        is_meant = bool(self.redaction.item_id and not self.target_text)
        if not (is_meant or chunk.was_found):
            return
        is_possible = Capability.ERASE_ITEMS in backend_for(self.record.store).capabilities
        is_wanted = is_meant or (self.redaction.takes_compactions and self.was_shown(text))
        if is_possible and chunk.type_before != "reasoning" and is_wanted:
            chunk.gone.add(item.id)
        else:
            chunk.left[LeftReason.COMPACTED] += 1

    def record_change(self, chunk: Chunk) -> None:
        """Records the change in the log, in the same transaction if there is one. Raises DeletionRefused."""
        check_deletion(records=[self.record.pk])
        counters = {"items": len(chunk.texts) + len(chunk.gone), "places": chunk.places}
        if not self.redaction.item_id:
            counters = {"items": len(chunk.texts), "places": chunk.places, "taken_out": len(chunk.gone)}
        audit.record(
            audit_events.ITEM_REDACTED if self.redaction.item_id else audit_events.SESSION_REDACTED,
            by=self.redaction.requested_by,
            target=self.record,
            subject=self.record.subject,
            counters=counters,
        )
        # Findings of an inspection are looked for again.
        inspect_again(self.record)

    def check_replay(self, before: Replay) -> None:
        """Replays the changed history through the SDK as proof, and counts the result.

        Items that agents of another SDK wrote are no input to it.
        """
        if not self.has_changed:
            return
        after = replay_of(self.record, self.seals, self.lease.keep)
        if after.works:
            self.outcome.replayed += 1
        elif not (after.unfit & self.rewritten) - before.unfit and after.uncalled <= before.uncalled:
            self.outcome.replayed_as_before += 1
        else:
            self.leave(LeftReason.UNREPLAYABLE)
