"""Target: whole sessions, in every kind of store that can delete them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Action, Rule
from memadmin.retention.targets import noting
from memadmin.retention.targets.after_sessions import delete_what_hung_on
from memadmin.retention.targets.base import (
    IsHeldSubject,
    KeptReason,
    PlaceCount,
    SweepChunk,
    after,
    held_session_q,
    place_of,
    register,
    tables_of,
)
from memadmin.retention.targets.due_rows import DueRows
from memadmin.retention.targets.records import (
    BEING_ERASED,
    CLOCKS,
    RecordTarget,
    agents_tables,
    refuse_unseen_activity,
    store_named,
)
from memadmin.retention.targets.registry_rows import SessionGone, StillActive, delete_unchanged, refuse_changed
from memadmin.retention.targets.unfinished import (
    let_go_on,
    lock_unfinished,
    note_finished,
    note_unfinished,
    unfinished,
)
from memadmin.runs.engine import CHUNK_SECONDS, stop_if_asked
from memories_app.models import Evidence, Signal
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.registry import has_fence
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion, refusals_explained
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, Capability, Deleted, SessionBusy, SessionUnreadable, StoreUnavailable
from sessions_app.stores.paged import mark_erased

SESSIONS_AT_ONCE = 200
"""Sessions of one chunk, at most: each takes a few statements, however short it is."""

FEWEST_ITEMS = 500
"""Items of one chunk, at least: no agent waits for sessions that are old, and a chunk takes some twenty statements."""

ASKED_AT_ONCE = 100
"""Sessions of which another system is asked at once."""


@register
class SessionTarget(RecordTarget):
    name = "sessions"
    title = "Sessions"
    actions = (Action.DELETE,)
    clocks: ClassVar = {"last_activity": "last activity", "created": "creation"}
    # No agent waits for sessions that are old, and half of the time of 1,000 items is that of the chunk itself: its
    # lease, policies, holds, event and counts.
    rows_at_once = 5_000
    remarks = (
        "A session is deleted as a whole. A session with activity in the last hour stays. After the deletion, agents"
        " can begin a new one under its ID."
    )

    def clock(self, name: str) -> F:
        return F(CLOCKS[name])

    def held(self) -> Q:
        """Also of a session from which something was learned that another hold keeps: it would lose its source."""
        held_memories = SessionRecord.objects.filter(
            held_session_q(), pk__in=Evidence.objects.filter(memory=OuterRef(OuterRef("memory"))).values("record_id")
        )
        evidence = Evidence.objects.filter(
            Q(IsHeldSubject(F("memory__subject_id"))) | Q(Exists(held_memories)), record_id=OuterRef("pk")
        )
        signals = Signal.objects.filter(IsHeldSubject(F("subject_id")), record_id=OuterRef("pk"))
        return held_session_q() | Q(Exists(evidence)) | Q(Exists(signals))

    def count(self, due: DueRows, rule: Rule, place: str) -> PlaceCount:
        store = SessionStore.objects.filter(name=place).first()
        if store is None:
            return PlaceCount(place, problem="The store was removed.")
        backend = backend_for(store)
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            return PlaceCount(place, problem=KeptReason.SENTENCES[KeptReason.CANNOT_ERASE])
        try:
            if has_fence(store):
                return due.count_with_items(rule, place, CLOCKS[rule.clock], backend.with_items)
            counted = self.count_rows(due, rule, place)
            return replace(counted, items=ask_each(backend, self.at_place(due.due(rule), place)))
        except StoreUnavailable:
            problem = "The store does not respond: its items are not counted, and a run skips it."
            return replace(self.count_rows(due, rule, place), problem=problem)

    def has_begun(self, rule: Rule, place: str) -> bool:
        return self.at_place(unfinished(rule), place).exists() or self.noted(rule, place).exists()

    def noted(self, rule: Rule, place: str) -> QuerySet[SessionRecord]:
        return noting.noted(self.at_place(self.rows(), place), rule)

    def expire_chunk(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> SweepChunk:
        """Sessions that were begun come first; then the oldest that are due, together or else one by one."""
        # Read once for all chunks that this process does one after the other; the last one looks whether it is there.
        store = result.store or store_named(result.place)
        backend = backend_for(store)
        chunk, at_most = SweepChunk(cursor=result.cursor), max(at_most, FEWEST_ITEMS)
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            if count := self.at_place(due.due(rule), result.place).count():
                chunk.left[KeptReason.CANNOT_ERASE] = count
            return chunk
        batch = self.begun_records(rule, store, chunk.cursor.get("busy", [])) if due.is_any_begun else []
        if not batch and due.rule_of(rule.version):
            batch = self.next_records(due, rule, result, store, count=sessions_for(at_most, result))
            if batch and delete_whole_sessions(backend, batch, chunk, at_most=at_most):
                chunk.tables.update(agents_tables(store, items=chunk.items, sessions=chunk.taken))
                return chunk
            if noting.note(backend, batch, rule):
                chunk.passed = 1
                return chunk
        is_in_order = bool(batch)
        if not batch:
            store_named(result.place)
            batch = noting.gone_uncounted(backend, self.noted(rule, store.name))
        self.delete_one_by_one(backend, batch, chunk, rule, at_most=at_most, is_in_order=is_in_order)
        chunk.tables.update(agents_tables(store, items=chunk.items, sessions=chunk.taken))
        return chunk

    def begun_records(self, rule: Rule, store: SessionStore, in_vain: Sequence[str]) -> list[SessionRecord]:
        rows = self.at_place(unfinished(rule), store.name).exclude(pk__in=in_vain).order_by("pk")
        return read(rows[:SESSIONS_AT_ONCE], store)

    def next_records(
        self, due: DueRows, rule: Rule, result: SweepResult, store: SessionStore, *, count: int
    ) -> list[SessionRecord]:
        """The next sessions that the rule takes, oldest first, at most `count`."""
        column = CLOCKS[rule.clock]
        rows = self.at_place(due.due(rule), store.name)
        if "at" in result.cursor:
            rows = rows.filter(after(column, result.cursor))
        return read(rows.exclude(BEING_ERASED).order_by(column, "pk")[:count], store)

    def delete_one_by_one(
        self,
        backend: Backend,
        batch: Sequence[SessionRecord],
        chunk: SweepChunk,
        rule: Rule,
        *,
        at_most: int,
        is_in_order: bool,
    ) -> None:
        """Deletes as many of these sessions as fit, the last of them perhaps in part. Raises StoreUnavailable."""
        until = monotonic() + CHUNK_SECONDS
        for record in batch:
            try:
                if not delete_session_part(backend, record, chunk, rule, at_most=at_most):
                    return
            except DeletionRefused:
                chunk.held += 1
                let_go_on(record)
            except StillActive:
                chunk.left[KeptReason.ACTIVE] += 1
            except SessionGone:
                pass
            except (SessionBusy, SessionUnreadable) as problem:
                chunk.left[KeptReason.BUSY if isinstance(problem, SessionBusy) else KeptReason.UNREADABLE] += 1
                if record.erased_at:
                    chunk.cursor = {**chunk.cursor, "busy": [*chunk.cursor.get("busy", []), str(record.pk)]}
            except StoreUnavailable:
                if chunk.passed:
                    # What went is counted; the next chunk meets the problem first.
                    return
                raise
            chunk.passed += 1
            if not record.erased_at and not has_fence(record.store):
                noting.forget(record)
            if not record.erased_at and is_in_order:
                chunk.cursor = {**chunk.cursor, **place_of(record, CLOCKS[rule.clock])}
            if chunk.items >= at_most or monotonic() > until:
                return


def ask_each(backend: Backend, rows: QuerySet[SessionRecord]) -> int:
    """Number of all items, by requests to another system, between which the run may be asked to stop."""
    ids, count = rows.order_by().values_list("session_id", flat=True).iterator(ASKED_AT_ONCE), 0
    while batch := list(islice(ids, ASKED_AT_ONCE)):
        stop_if_asked()
        count += sum(backend.count_each(batch).values())
    return count


def read(rows: Any, store: SessionStore) -> list[SessionRecord]:
    """The records of one store, which know it."""
    records = list(rows)
    for record in records:
        record.store = store
    return records


def sessions_for(at_most: int, result: SweepResult) -> int:
    """Number of sessions to read for a chunk of so many items, by those that went before."""
    if not result.taken:
        return SESSIONS_AT_ONCE
    items_each = max(result.items // result.taken, 1)
    return min(SESSIONS_AT_ONCE, at_most // items_each + 1)


def delete_whole_sessions(backend: Backend, batch: Sequence[SessionRecord], chunk: SweepChunk, *, at_most: int) -> bool:
    """Deletes the first sessions of the batch together; false if that is not possible, with nothing changed.

    Their registry rows go with them, unless one has changed since it was read.
    """
    records = {record.session_id: record for record in batch}
    tables: Counter[str] = Counter()
    try:
        with refusals_explained():
            items = backend.delete_whole(
                list(records), at_most=at_most, close=partial(delete_from_registry, records, tables)
            )
    except (DeletionRefused, StillActive, SessionGone, SessionBusy):
        return False
    chunk.tables.update(tables)
    chunk.taken, chunk.items = len(items), sum(items.values())
    # A session without items counts, too.
    chunk.passed = chunk.taken + chunk.items
    chunk.shown = [records[session_id].pk for session_id in items]
    return bool(items)


def delete_from_registry(records: dict[str, SessionRecord], tables: Counter[str], session_ids: Sequence[str]) -> None:
    """Deletes the rows of these sessions and what hung on them, and counts them. Raises as `delete_unchanged`."""
    gone = [records[session_id] for session_id in session_ids]
    tables.update(delete_unchanged(gone))
    tables.update(delete_what_hung_on(gone))


def delete_session_part(
    backend: Backend, record: SessionRecord, chunk: SweepChunk, rule: Rule, *, at_most: int
) -> bool:
    """Deletes items of one session; true if it is gone.

    Raises DeletionRefused, StillActive, SessionGone and StoreUnavailable.
    """
    is_begun, is_here = record.erased_at is not None, has_fence(record.store)
    tables: Counter[str] = Counter()
    with refusals_explained(), transaction.atomic():
        if is_begun:
            # Holds are asked for the session's first chunk by a trigger, and for the others here.
            check_deletion(records=[record.pk])
            lock_unfinished(record)
        elif not is_here:
            # What is deleted in another system does not come back: all that can refuse comes first.
            mark_erased(record.store, [record.session_id])
            refuse_changed(record)
            refuse_unseen_activity(backend, record)
            tables.update(delete_what_hung_on([record]))
        noted, room = 0 if is_here else noting.noted_items(record), max(at_most - chunk.items, 1)
        if not is_here and not is_begun and noted > room:
            # Its fence is committed before a part of it goes, and it goes in the next chunks.
            deleted = Deleted(0, noted)
        else:
            deleted = backend.delete_some(record.session_id, at_most=room)
        if not deleted.left:
            deleted = Deleted(max(deleted.count, noted), 0)
        if is_here and not is_begun:
            refuse_changed(record)
            tables.update(delete_what_hung_on([record]))
        if deleted.left:
            note_unfinished(record, rule)
            if not is_here:
                noting.count_off(record, deleted.count)
        else:
            if is_begun:
                # An inspection that had begun before may have noted something since.
                tables.update(delete_what_hung_on([record]))
            note_finished(record)
            tables.update(tables_of(SessionRecord.objects.filter(pk=record.pk).delete()[1]))
    chunk.tables.update(tables)
    chunk.items += deleted.count
    chunk.passed += deleted.count
    if deleted.left:
        # What a chunk does must be saved before the next one, also if nothing went.
        chunk.passed = max(chunk.passed, 1)
        return False
    chunk.taken += 1
    chunk.shown.append(record.pk)
    return True
