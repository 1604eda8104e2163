"""Items of one session that a rule takes: counted for a preview, deleted or redacted by a run, in whole turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic

from django.db import transaction

from memadmin import audit
from memadmin.retention import audit_events
from memadmin.retention.policies.rules import Action, Rule, has_minimum_for
from memadmin.retention.targets import noting
from memadmin.retention.targets.after_sessions import delete_what_hung_on_items
from memadmin.retention.targets.base import SweepChunk
from memadmin.runs.engine import CHUNK_SECONDS
from sessions_app.encryption import sealing_of
from sessions_app.encryption.purging import Purge, encrypted_or_written_at
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.redaction.items import NestedTooDeep, without_all_text
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion, refusals_explained
from sessions_app.stores import backend_for
from sessions_app.stores.base import SessionBusy, StoreUnavailable
from sessions_app.stores.rewriting import Changes, Rewriter
from sessions_app.stores.sealed import sealed_backend_for

LOOKED_AT = 100
"""Items at the beginning of a session among which the first one with a time is looked for."""

MOST_NOTED = 1_000
"""Items of one note, about: at some eighty bytes each."""


class NoTime(Exception):
    """The first items of the session have no time, so it is not known which of them are old."""


class ItemExpiry:
    """Items of one session that are due under one rule. The session is read only if its first item is due."""

    def __init__(self, store: SessionStore, record: SessionRecord, rule: Rule, rules: Sequence[Rule], at: datetime):
        self.store, self.record, self.rule, self.at = store, record, rule, at
        # A minimum counts for every session, which keeps rather too much than too little. Those of whole sessions are
        # in the query.
        same = [other for other in rules if other.target == rule.target]
        self.minimums = [other.minimum for other in same if other.minimum and has_minimum_for(other, rule.target)]
        self.decision = Purge(at, time_of=self.due_at)
        self.seals = sealing_of(store).of_session(record.session_id)
        self.key_of = partial(noting.key_of, backend_for(store), rule.action)
        # For notes: the items that alone may go, the ids of those that were looked at, and what is not counted yet.
        self.only: set[Hashable] | None = None
        self.seen: set[str] = set()
        self.uncounted: Sequence[noting.ItemMark] = ()
        self.until = monotonic()

    def due_at(self, item: StoredItem) -> datetime | None:
        """The instant at which an item is due: its own time, the length, and every legal minimum."""
        written_at = encrypted_or_written_at(item)
        if written_at is None or self.rule.length is None:
            return None
        return max(length.after(written_at) for length in (self.rule.length, *self.minimums))

    def is_old(self) -> bool:
        """Whether the first item of the session is due: if not, no other is. One short query.

        Items without a time are passed over; raises NoTime if the first LOOKED_AT have none.
        """
        backend = backend_for(self.store)
        for limit in (1, LOOKED_AT):
            items = backend.first_page(self.record.session_id, limit).items
            for moment in map(self.due_at, self.seals.examined_now(items)):
                if moment is not None:
                    return moment <= self.at
            if len(items) < limit:
                break
        if items:
            raise NoTime
        return False

    def learn(self) -> None:
        """Reads the whole session: which of its items stay decides about the other halves of tool calls."""
        self.decision.learn(self.every_item())

    def every_item(self) -> Iterator[StoredItem]:
        return sealed_backend_for(self.store, opens=True).every_item(self.record.session_id)

    def count(self) -> int:
        """Number of items that would go, or lose their text if they have any. Raises NoTime and StoreUnavailable."""
        if not self.is_old():
            return 0
        self.learn()
        changes = self.changes_of(list(self.every_item()))
        return len(changes.gone) + len(changes.texts)

    def changes_of(self, items: Sequence[StoredItem]) -> Changes:
        gone = self.decision.goes(items)
        return Changes(gone=gone) if self.rule.action == Action.DELETE else Changes(texts=dict(redacted(items, gone)))

    # --- the run ------------------------------------------------------------------------------------------------------

    def to_note(self, rewriter: Rewriter) -> tuple[list[noting.ItemMark], bool]:
        """Items that would go, for about CHUNK_SECONDS or MOST_NOTED of them, and whether these are all.

        For stores in other systems. Changes nothing. Raises StoreUnavailable.
        """
        self.learn_in_time()
        marks: list[noting.ItemMark] = []

        def note(items: Sequence[StoredItem]) -> Changes:
            changes = self.changes_of(self.seals.examined(items, at=self.at, opens=True))
            marks.extend(noting.mark(item) for item in items if item.id in changes.gone or item.id in changes.texts)
            return Changes()

        place: Position | None = None
        while True:
            place = rewriter.change_items(
                self.record.session_id, place, decide=note, before_writing=self.before_writing
            )
            if place is None or len(marks) >= MOST_NOTED or (marks and monotonic() > self.until):
                return marks, place is None

    def settle(self, marks: Sequence[noting.ItemMark], chunk: SweepChunk) -> Sequence[noting.ItemMark]:
        """Counts the noted items that went and could not be counted; returns the others. Raises StoreUnavailable."""
        self.uncounted = marks
        try:
            there = noting.keys_there(backend_for(self.store), self.rule.action, self.record)
        except SessionBusy as problem:
            # Not only this session: its file cannot be read at all. A note that was forgotten would never be counted.
            raise StoreUnavailable(str(problem)) from problem
        gone = [mark for mark in marks if self.key_of(mark) not in there]
        if gone:
            tables: Counter[str] = Counter()
            with suppress(DeletionRefused), refusals_explained(), transaction.atomic():
                # A hold that came since keeps what hung on them.
                tables = delete_what_hung_on_items(self.record, {item_id for item_id, _ in gone})
            self.record_event(len(gone))
            self.add(chunk, len(gone), tables)
        self.uncounted = [mark for mark in marks if self.key_of(mark) in there]
        return self.uncounted

    def expire(self, rewriter: Rewriter, chunk: SweepChunk) -> bool:
        """Deletes or redacts what is due, for about CHUNK_SECONDS; true if no more is due.

        Each step of the rewriter is in the chunk's transaction. Raises DeletionRefused and StoreUnavailable.
        """
        self.learn_in_time()
        place: Position | None = None
        while True:
            self.kept_before = self.decision.kept_expired
            self.tables: Counter[str] = Counter()
            place = rewriter.change_items(
                self.record.session_id, place, decide=self.decide, before_writing=self.before_writing
            )
            self.add(chunk, len(self.changes.gone) + len(self.changes.texts), self.tables)
            changed = {*self.changes.gone, *self.changes.texts}
            self.uncounted = [mark for mark in self.uncounted if mark[0] not in changed]
            if place is None or monotonic() > self.until:
                return place is None

    def expire_noted(
        self, rewriter: Rewriter, chunk: SweepChunk, marks: Sequence[noting.ItemMark]
    ) -> list[noting.ItemMark]:
        """`expire` of these items alone; returns those for which there was no time."""
        self.only = {self.key_of(mark) for mark in marks}
        try:
            is_all = self.expire(rewriter, chunk)
        except SessionBusy:
            # A file may have been changed all the same: only its log could not be emptied.
            self.settle(self.uncounted, chunk)
            raise
        return [] if is_all else [mark for mark in marks if mark[0] not in self.seen]

    def learn_in_time(self) -> None:
        """All of a session is read for each chunk: a chunk of a long one works for as long as it took to read."""
        began = monotonic()
        self.learn()
        self.until = monotonic() + max(monotonic() - began, CHUNK_SECONDS)

    def add(self, chunk: SweepChunk, count: int, tables: Counter[str]) -> None:
        chunk.items += count
        chunk.passed += count
        chunk.tables.update(tables)
        if count and self.record.pk not in chunk.shown[-1:]:
            chunk.shown.append(self.record.pk)

    def decide(self, items: Sequence[StoredItem]) -> Changes:
        """For the rewriter, which may call it again with the same items after a conflict with an agent."""
        self.decision.kept_expired = self.kept_before
        self.changes = self.changes_of(self.seals.examined(items, at=self.at, opens=True))
        if self.only is not None:
            self.seen.update(item.id for item in items)
            noted = {item.id for item in items if self.key_of(noting.mark(item)) in self.only}
            texts = {item_id: text for item_id, text in self.changes.texts.items() if item_id in noted}
            self.changes = Changes(gone=self.changes.gone & noted, texts=texts)
        return self.changes

    def before_writing(self, changes: Changes) -> None:
        """For the rewriter: what has to come first, with the session locked."""
        changed = {*changes.gone, *changes.texts}
        check_deletion(records=[self.record.pk])
        with refusals_explained():
            self.tables = delete_what_hung_on_items(self.record, changed)
        self.record_event(len(changed))
        SessionRecord.objects.filter(pk=self.record.pk).inspect_again()

    def record_event(self, count: int) -> None:
        audit.record(
            audit_events.ITEMS_EXPIRED, target=self.record, subject=self.record.subject_id, counters={"items": count}
        )


def redacted(items: Sequence[StoredItem], wanted: set[str]) -> Iterator[tuple[str, str]]:
    """New texts of the items that have any text left."""
    for item in items:
        if item.id in wanted:
            try:
                raw = without_all_text(item.raw).raw
            except NestedTooDeep:
                continue
            if raw != item.raw:
                yield item.id, raw
