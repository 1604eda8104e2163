"""Items of one session that a rule takes: counted for a preview, deleted or redacted by a run, in whole turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from time import monotonic

from memadmin import audit
from memadmin.retention import audit_events
from memadmin.retention.policies.rules import Action, Rule, has_minimum_for
from memadmin.retention.targets.after_sessions import delete_what_hung_on_items
from memadmin.retention.targets.base import KeptReason, SweepChunk
from memadmin.runs.engine import CHUNK_SECONDS
from sessions_app.encryption import sealing_of
from sessions_app.encryption.purging import Purge, encrypted_or_written_at
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.redaction.items import NestedTooDeep, without_all_text
from sessions_app.services.deletion_guards import check_deletion, refusals_explained
from sessions_app.stores import backend_for
from sessions_app.stores.rewriting import Changes, Rewriter
from sessions_app.stores.sealed import sealed_backend_for

LOOKED_AT = 100
"""Items at the beginning of a session among which the first one with a time is looked for."""


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

    def expire(self, rewriter: Rewriter, chunk: SweepChunk) -> bool:
        """Deletes or redacts what is due, for about CHUNK_SECONDS; true if no more is due.

        Each step of the rewriter is in the chunk's transaction. Raises DeletionRefused and StoreUnavailable.
        """
        began = monotonic()
        self.learn()
        # All of a session is read for each chunk: a chunk of a long one deletes for as long as it took to read.
        until = monotonic() + max(monotonic() - began, CHUNK_SECONDS)
        place: Position | None = None
        has_changed = False
        while True:
            self.kept_before = self.decision.kept_expired
            self.tables: Counter[str] = Counter()
            place = rewriter.change_items(
                self.record.session_id, place, decide=self.decide, before_writing=self.before_writing
            )
            count = len(self.changes.gone) + len(self.changes.texts)
            chunk.items += count
            chunk.passed += count
            chunk.tables.update(self.tables)
            if count and not has_changed:
                has_changed = True
                chunk.shown.append(self.record.pk)
            if place is None or monotonic() > until:
                break
        if place is not None:
            return False
        chunk.taken += has_changed
        if self.decision.kept_expired:
            chunk.left[KeptReason.KEPT_WITH_TURN] += self.decision.kept_expired
        return True

    def decide(self, items: Sequence[StoredItem]) -> Changes:
        """For the rewriter, which may call it again with the same items after a conflict with an agent."""
        self.decision.kept_expired = self.kept_before
        self.changes = self.changes_of(self.seals.examined(items, at=self.at, opens=True))
        return self.changes

    def before_writing(self, changes: Changes) -> None:
        """For the rewriter: what has to come first, with the session locked."""
        changed = {*changes.gone, *changes.texts}
        check_deletion(records=[self.record.pk])
        with refusals_explained():
            self.tables = delete_what_hung_on_items(self.record, changed)
        audit.record(
            audit_events.ITEMS_EXPIRED,
            target=self.record,
            subject=self.record.subject_id,
            counters={"items": len(changed)},
        )
        SessionRecord.objects.filter(pk=self.record.pk).inspect_again()


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
