"""Target: items of sessions that go on, in whole turns, by the time at which they were written or encrypted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from time import monotonic
from typing import ClassVar

from django.db.models import F

from memadmin import audit
from memadmin.retention import audit_events
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import Action, Facts, Rule
from memadmin.retention.targets.after_sessions import delete_what_hung_on_items
from memadmin.retention.targets.base import KeptReason, PlaceCount, Taken, added, register
from memadmin.retention.targets.due_rows import DueRows, database_time
from memadmin.retention.targets.sessions import (
    RecordTarget,
    StillActive,
    after,
    place_of,
    refuse_unseen_activity,
    store_named,
)
from memadmin.runs.engine import CHUNK_SECONDS, stop_if_asked
from sessions_app.encryption import Sealing, sealing_of
from sessions_app.encryption.purging import Purge, encrypted_or_written_at
from sessions_app.items import Position, StoredItem
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.redaction.items import NestedTooDeep, without_all_text
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion, refusals_explained
from sessions_app.stores import backend_for
from sessions_app.stores.base import Capability, SessionBusy, SessionUnreadable, StoreUnavailable
from sessions_app.stores.rewriting import CannotRewrite, Changes, Rewriter, rewriter_for
from sessions_app.stores.sealed import sealed_backend_for

SESSIONS_AT_ONCE = 100
"""Sessions of one chunk, at most. Of most of them only the first item is read."""

MOST_COUNTED = 200
"""Sessions that a preview reads: a run reads all."""


@register
class ItemTarget(RecordTarget):
    name = "items"
    title = "Items of sessions"
    actions = (Action.DELETE, Action.REDACT)
    minimums_of = ("sessions",)
    clocks: ClassVar = {"written": "time of writing"}
    remarks = (
        "Whole turns go, and no output without its call; of encrypted items the time of the token counts, which needs"
        " no key. Of a store without times only encrypted items go. The session goes on with its later items."
    )

    def clock(self, name: str) -> F:
        """Of a session: when it began, for no item is older."""
        return F("registered_at")

    def facts(self, row: SessionRecord, holds: Sequence[int] = ()) -> Facts:
        """Of a session: its oldest items may be as old as itself."""
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
                if count := count_due(store, record.session_id, rule, due_times(due, rule), at):
                    sessions, items = sessions + 1, items + count
                    subjects.add(record.subject_id)
                    oldest = oldest or record.registered_at
            else:
                is_complete = True
        except CannotRewrite:
            problem = KeptReason.SENTENCES[KeptReason.CANNOT_REWRITE]
        except StoreUnavailable:
            problem = "The store does not respond: a run skips it."
        return PlaceCount(
            place,
            rows=sessions,
            items=items,
            held=self.at_place(due.held(rule), place).count(),
            live=self.at_place(due.live(rule), place).count(),
            subjects=len(subjects - {None}),
            oldest=oldest,
            problem=problem,
            is_complete=is_complete,
        )

    def still_due(self, due: DueRows, rule: Rule, place: str) -> tuple[int | None, datetime | None]:
        """The sessions of which items are due; the others are only old."""
        counted = self.count(due, rule, place)
        return (counted.rows if counted.is_complete else None), counted.oldest

    def take_some(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> Taken:
        store = store_named(result.place)
        taken = Taken(cursor=result.cursor)
        try:
            rewriter = rewriter_for(store, needed(rule))
        except CannotRewrite:
            count = self.at_place(due.due(rule), result.place).count()
            taken.left = {KeptReason.CANNOT_REWRITE: count} if count else {}
            return taken
        rows = self.at_place(due.due(rule), result.place)
        if "at" in result.cursor:
            rows = rows.filter(after("registered_at", result.cursor))
        at, times = due.at or database_time(), due_times(due, rule)
        until = monotonic() + CHUNK_SECONDS
        for record in rows.order_by("registered_at", "pk")[:SESSIONS_AT_ONCE]:
            try:
                is_new = result.cursor.get("within") != str(record.pk)
                is_done = take_from(store, rewriter, record, rule, times, at, taken, is_new=is_new)
            except DeletionRefused:
                taken.held += 1
            except StillActive:
                taken.leave(KeptReason.ACTIVE)
            except (SessionBusy, SessionUnreadable) as problem:
                taken.leave(KeptReason.BUSY if isinstance(problem, SessionBusy) else KeptReason.UNREADABLE)
            except StoreUnavailable:
                if taken.passed:
                    return taken
                raise
            else:
                if not is_done:
                    taken.cursor = {**taken.cursor, "within": str(record.pk)}
                    return taken
            taken.passed += 1
            taken.cursor = place_of(record, "registered_at")
            if monotonic() > until:
                break
        return taken


class DueTimes:
    """The instant at which an item is due: its own time, the length, and every legal minimum."""

    def __init__(self, rule: Rule, minimums: Sequence[Rule]) -> None:
        self.rule, self.minimums = rule, minimums

    def __call__(self, item: StoredItem) -> datetime | None:
        written_at = encrypted_or_written_at(item)
        if written_at is None or self.rule.length is None:
            return None
        ends = [rule.minimum.after(written_at) for rule in self.minimums if rule.minimum]
        return max([self.rule.length.after(written_at), *ends])


def due_times(due: DueRows, rule: Rule) -> DueTimes:
    """Times of items under a rule. A minimum counts for every session, which keeps rather too much than too little."""
    return DueTimes(rule, [other for other in due.rules if other.target == rule.target and other.minimum])


def needed(rule: Rule) -> Capability:
    return Capability.REPLACE_ITEMS if rule.action == Action.REDACT else Capability.ERASE_ITEMS


def is_old(store: SessionStore, sealing: Sealing, session_id: str, times: DueTimes, at: datetime) -> bool:
    """Whether the first item of a session is due: if not, no other is. One short query."""
    items = backend_for(store).first_page(session_id, 1).items
    examined = sealing.of_session(session_id).examined_now(items)
    return any((moment := times(item)) is not None and moment <= at for item in examined)


def decision_on(store: SessionStore, session_id: str, times: DueTimes, at: datetime) -> Purge:
    """What goes of a session, decided on all of its items."""
    decision = Purge(at, time_of=times)
    decision.learn(sealed_backend_for(store, opens=True).every_item(session_id))
    return decision


def count_due(store: SessionStore, session_id: str, rule: Rule, times: DueTimes, at: datetime) -> int:
    """Number of items of a session that would go, or lose their text if they have any."""
    if not is_old(store, sealing_of(store), session_id, times, at):
        return 0
    decision = decision_on(store, session_id, times, at)
    items = list(sealed_backend_for(store, opens=True).every_item(session_id))
    gone = decision.goes(items)
    return len(gone) if rule.action == Action.DELETE else sum(1 for _ in redacted(items, gone))


def take_from(
    store: SessionStore,
    rewriter: Rewriter,
    record: SessionRecord,
    rule: Rule,
    times: DueTimes,
    at: datetime,
    taken: Taken,
    *,
    is_new: bool,
) -> bool:
    """Deletes or redacts items of one session; true if no more is due.

    Raises DeletionRefused, StillActive and StoreUnavailable. `is_new`: this run has changed nothing in it yet.
    """
    sealing = sealing_of(store)
    if not is_old(store, sealing, record.session_id, times, at):
        return True
    if is_new:
        # What the run itself has changed would look like an agent's writing.
        refuse_unseen_activity(backend_for(store), record)
    seals = sealing.of_session(record.session_id)
    began = monotonic()
    decision = decision_on(store, record.session_id, times, at)
    # All of a session is read for each chunk: a chunk of a long one deletes for as long as it took to read.
    until = monotonic() + max(monotonic() - began, CHUNK_SECONDS)
    changed: list[Changes] = []
    tables: list[dict[str, int]] = []
    here = 0

    def decide(items: Sequence[StoredItem]) -> Changes:
        # May be called again with the same items, after a conflict with an agent.
        decision.kept_expired = kept_before
        gone = decision.goes(seals.examined(items, at=at, opens=True))
        changes = Changes(gone=gone) if rule.action == Action.DELETE else Changes(texts=dict(redacted(items, gone)))
        changed[:] = [changes]
        return changes

    def before_writing(changes: Changes) -> None:
        check_deletion(records=[record.pk])
        with refusals_explained():
            tables.append(delete_what_hung_on_items(record, {*changes.gone, *changes.texts}))
        audit.record(
            audit_events.ITEMS_EXPIRED,
            target=record,
            subject=record.subject_id,
            counters={"items": len(changes.gone) + len(changes.texts)},
        )
        SessionRecord.objects.filter(pk=record.pk).inspect_again()

    place: Position | None = None
    while True:
        kept_before = decision.kept_expired
        tables.clear()
        place = rewriter.change_items(record.session_id, place, decide=decide, before_writing=before_writing)
        count = sum(len(each.gone) + len(each.texts) for each in changed)
        taken.items, taken.passed, here = taken.items + count, taken.passed + count, here + count
        for each in tables[-1:]:
            taken.tables = added(taken.tables, each)
        if place is None or monotonic() > until:
            break
    if place is None and decision.kept_expired:
        taken.leave(KeptReason.KEPT_WITH_TURN, decision.kept_expired)
    if here:
        taken.shown.append(record.pk)
        taken.taken += place is None
    return place is None


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
