"""Target: items of sessions that go on, in whole turns, by the time at which they were written or encrypted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import ClassVar

from django.db.models import F

from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.retention.targets import noting
from memadmin.retention.targets.base import KeptReason, PlaceCount, SweepChunk, after, place_of, register
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.retention.targets.item_expiry import ItemExpiry, NoTime
from memadmin.retention.targets.records import (
    RecordTarget,
    agents_tables,
    refuse_unseen_activity,
    store_named,
)
from memadmin.retention.targets.registry_rows import StillActive
from memadmin.runs.engine import CHUNK_SECONDS, stop_if_asked
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import has_fence
from sessions_app.services.deletion_guards import DeletionRefused
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy, SessionUnreadable, StoreUnavailable
from sessions_app.stores.rewriting import CannotRewrite, Rewriter, rewriter_for

SESSIONS_AT_ONCE = 100
"""Sessions of one chunk, at most. Of most of them only the first item is read."""

MOST_COUNTED = 200
"""Sessions that a preview reads: a run reads all."""

WITHIN = "within"
"""Key of the cursor: the session of which only a part was changed, or noted."""

CHANGED = "changed"
"""Key of the cursor: the session of which only a part of the note is done."""


@register
class ItemTarget(RecordTarget):
    name = "items"
    title = "Items of sessions"
    actions = (Action.DELETE, Action.REDACT)
    clocks: ClassVar = {"written": "time of writing"}
    remarks = (
        "Whole turns go, and no output without its call; of encrypted items the time of the token counts, which needs"
        " no key. Of a store without times only encrypted items go. The session goes on with its later items."
    )

    def clock(self, name: str) -> F:
        """The start of the session: no item is older."""
        return F("registered_at")

    def facts(self, row: SessionRecord, holds: Sequence[int] = ()) -> Facts:
        """Facts of the session, whose oldest items may be as old as itself."""
        facts = super().facts(row, holds)
        return replace(facts, clocks={**facts.clocks, "written": row.registered_at})

    def count(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        store = SessionStore.objects.filter(name=place).first()
        if store is None:
            return PlaceCount(place, problem="The store was removed.")
        rows = self.at_place(due.due(rule), place)
        at = due.at or database_time()
        sessions = items = 0
        subjects, oldest, problem, is_complete = set(), None, "", False
        try:
            rewriter_for(store, needed(rule))
            for number, record in enumerate(rows.order_by("registered_at", "pk")[: MOST_COUNTED + 1]):
                stop_if_asked()
                if number == MOST_COUNTED:
                    problem = f"Only the oldest {MOST_COUNTED} sessions were read. A run takes more."
                    break
                if count := count_due(store, record, rule, due, at):
                    sessions, items = sessions + 1, items + count
                    subjects.add(record.subject_id)
                    oldest = oldest or record.registered_at
            else:
                is_complete = True
        except CannotRewrite:
            problem = KeptReason.SENTENCES[KeptReason.CANNOT_REWRITE]
        except StoreUnavailable:
            problem = "The store does not respond: a run skips it."
        return replace(
            due.count(rule, place),
            rows=sessions,
            items=items,
            subjects=len(subjects - {None}),
            oldest=oldest,
            newest=None,
            problem=problem,
            is_complete=is_complete,
        )

    def count_rows(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        """The sessions of which items are due: the others that the query finds are only old."""
        return self.count(due, rule, place)

    def has_begun(self, rule: Rule, place: str) -> bool:
        return bool(noting.item_notes(self.at_place(self.rows(), place), rule))

    def expire_chunk(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> SweepChunk:
        """Items of the oldest sessions that are due. Those in other systems are noted in one chunk, and go in the next.

        What is noted comes first, also of sessions that are not due any more.
        """
        store = store_named(result.place)
        rows = self.at_place(due.due(rule), store.name) if due.rule_of(rule.version) else self.rows().none()
        chunk = SweepChunk(cursor=result.cursor)
        try:
            rewriter = rewriter_for(store, needed(rule))
        except CannotRewrite:
            if count := rows.count():
                chunk.left[KeptReason.CANNOT_REWRITE] = count
            return chunk
        notes = noting.item_notes(self.at_place(self.rows(), store.name), rule) if due.is_any_begun else {}
        at, until = due.at or database_time(), monotonic() + CHUNK_SECONDS
        if notes:
            due_now = set(rows.filter(pk__in=[record.pk for record in notes]).values_list("pk", flat=True))
            for record, marks in notes.items():
                expiry = ItemExpiry(store, record, rule, due.rules, at)
                is_done = self.expire_noted(expiry, rewriter, chunk, marks, is_due=record.pk in due_now)
                if not is_done or monotonic() > until:
                    break
        else:
            if "at" in result.cursor:
                rows = rows.filter(after("registered_at", result.cursor))
            for record in rows.select_related("store").order_by("registered_at", "pk")[:SESSIONS_AT_ONCE]:
                expiry = ItemExpiry(store, record, rule, due.rules, at)
                if not self.expire_next(expiry, rewriter, chunk) or monotonic() > until:
                    break
        chunk.tables.update(agents_tables(store, items=chunk.items))
        return chunk

    def expire_next(self, expiry: ItemExpiry, rewriter: Rewriter, chunk: SweepChunk) -> bool:
        """Deletes or redacts items of a session, or notes them; true if it is done with the session.

        Raises StoreUnavailable if the chunk has done nothing yet.
        """
        record, is_all = expiry.record, True
        marks: list[noting.ItemMark] = []
        # What the run itself has changed would look like an agent's writing.
        is_within = chunk.cursor.get(WITHIN) == str(record.pk)
        try:
            with counted_if_left(chunk):
                if expiry.is_old():
                    if not is_within:
                        refuse_unseen_activity(backend_for(expiry.store), record)
                    if has_fence(expiry.store):
                        is_all = expiry.expire(rewriter, chunk)
                    else:
                        marks, is_all = expiry.to_note(rewriter)
                    if is_all and expiry.decision.kept_expired:
                        chunk.left[KeptReason.KEPT_WITH_TURN] += expiry.decision.kept_expired
        except StoreUnavailable:
            if chunk.passed:
                return False
            raise
        chunk.passed += 1
        if marks:
            noting.note_items(record, expiry.rule, marks)
        if not is_all:
            chunk.cursor = {**chunk.cursor, WITHIN: str(record.pk)}
            return False
        # What is noted is counted when it goes.
        chunk.taken += not marks and (is_within or record.pk in chunk.shown[-1:])
        chunk.cursor = place_of(record, "registered_at")
        return True

    def expire_noted(
        self,
        expiry: ItemExpiry,
        rewriter: Rewriter,
        chunk: SweepChunk,
        marks: Sequence[noting.ItemMark],
        *,
        is_due: bool,
    ) -> bool:
        """Counts the noted items that are gone, and deletes or redacts the others if they are due; true if it is done
        with the note. Raises StoreUnavailable if the chunk has done nothing yet.
        """
        record, is_away, stays = expiry.record, False, True
        left: Sequence[noting.ItemMark] = []
        is_changed = chunk.cursor.get(CHANGED) == str(record.pk)
        is_within = chunk.cursor.get(WITHIN) == str(record.pk)
        try:
            with counted_if_left(chunk):
                there = expiry.settle(marks, chunk)
                if there and is_due:
                    if not is_changed and not is_within:
                        refuse_unseen_activity(backend_for(expiry.store), record)
                    left = expiry.expire_noted(rewriter, chunk, there)
                stays = False
        except StoreUnavailable:
            if not chunk.passed:
                raise
            # What was counted in this chunk must not be in the note of the next one.
            left, is_away, stays = expiry.uncounted, True, False
        chunk.passed += 1
        is_changed = is_changed or record.pk in chunk.shown[-1:]
        if left:
            noting.note_items(record, expiry.rule, left)
            if is_changed:
                chunk.cursor = {**chunk.cursor, CHANGED: str(record.pk)}
            return False
        noting.forget(record)
        if stays and is_within:
            # The rest of it waits for the next run, or it would be noted again and again.
            chunk.cursor = place_of(record, "registered_at")
        chunk.taken += is_changed and (stays or not is_within)
        return not is_away


@contextmanager
def counted_if_left(chunk: SweepChunk) -> Iterator[None]:
    """Counts a session that stays for now, by its reason. Other problems of the store pass."""
    try:
        yield
    except NoTime:
        chunk.left[KeptReason.NO_TIME] += 1
    except DeletionRefused:
        chunk.held += 1
    except StillActive:
        chunk.left[KeptReason.ACTIVE] += 1
    except SessionBusy:
        chunk.left[KeptReason.BUSY] += 1
    except SessionUnreadable:
        chunk.left[KeptReason.UNREADABLE] += 1


def needed(rule: Rule) -> Capability:
    return Capability.REPLACE_ITEMS if rule.action == Action.REDACT else Capability.ERASE_ITEMS


def count_due(store: SessionStore, record: SessionRecord, rule: Rule, due: DueRows, at: datetime) -> int:
    """Number of items of a session that would go; 0 where their times are not known."""
    try:
        return ItemExpiry(store, record, rule, due.rules, at).count()
    except NoTime:
        return 0
