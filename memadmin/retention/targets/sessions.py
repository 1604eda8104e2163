"""Target: whole sessions, in every kind of store that can delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from time import monotonic
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import Count, Exists, F, Max, Min, OuterRef, Q, QuerySet, Value

from memadmin.retention.models import SweepResult, UnfinishedExpiry
from memadmin.retention.policies.rules import Action, Facts, Rule, pattern_regex
from memadmin.retention.targets import noting
from memadmin.retention.targets.after_sessions import delete_records, delete_what_hung_on
from memadmin.retention.targets.base import (
    CannotSweep,
    IsHeldSubject,
    KeptReason,
    PlaceCount,
    RetentionTarget,
    Taken,
    added,
    held_session_q,
    register,
    subject_kind_q,
)
from memadmin.retention.targets.due_rows import DueRows
from memadmin.runs.engine import CHUNK_SECONDS, stop_if_asked
from memories_app.models import Evidence, Signal
from sessions_app import registry
from sessions_app.models import SessionRecord, SessionStore, Subject
from sessions_app.services.deletion_guards import DeletionRefused, check_deletion, refusals_explained
from sessions_app.services.discovery import discover_changes
from sessions_app.stores import backend_for
from sessions_app.stores.base import Backend, Capability, Deleted, SessionBusy, SessionUnreadable, StoreUnavailable
from sessions_app.stores.paged import mark_erased

LIVE = timedelta(hours=1)
"""A session with activity in this time is in use, whatever the policy says."""

BEING_ERASED = Q(is_forgotten=True) | Q(subject__erased_at__isnull=False)
"""Condition of sessions that an erasure has taken over, or has erased."""

SESSIONS_AT_ONCE = 100
"""Sessions of one chunk, at most: each takes a few statements, however short it is."""

FEWEST_ITEMS = 500
"""Items of one chunk, at least: no agent waits for sessions that are old, and a chunk takes some thirty statements."""

COUNTED_AT_ONCE = 10_000

ASKED_AT_ONCE = 100
"""The same where each is a request to another system."""

CONDITIONS: Mapping[str, Callable[[Any], Q]] = {
    "store": lambda name: Q(store__name=name),
    "session_pattern": lambda pattern: Q(session_id__regex=f"^{pattern_regex(pattern)}$"),
    "agent": lambda name: Q(agent=name),
    "label": lambda label: Q(labels__contains=[label]),
    "subject_kind": subject_kind_q,
    "is_encrypted": lambda is_encrypted: Q(is_encrypted=is_encrypted),
}


class RecordTarget(RetentionTarget):
    """A target whose rows are records of sessions."""

    unit = "sessions"
    conditions = CONDITIONS

    def rows(self) -> QuerySet[SessionRecord]:
        return SessionRecord.objects.on_record().filter(is_forgotten=False)

    def held(self) -> Q:
        return held_session_q()

    def live(self, at: Any) -> Q:
        return Q(last_activity_at__gt=at - Value(LIVE))

    def facts(self, row: SessionRecord, holds: Sequence[int] = ()) -> Facts:
        """Two queries at most, unless store and subject are loaded."""
        first = next((alias for alias in row.subject.aliases.all() if alias.is_primary), None) if row.subject else None
        return Facts(
            target=self.name,
            scope={
                "store": row.store.name,
                "session_pattern": row.session_id,
                "agent": row.agent,
                "label": list(row.labels),
                "subject_kind": first.kind if first else "",
                "is_encrypted": row.is_encrypted,
            },
            clocks={name: getattr(row, column) for name, column in CLOCKS.items()},
            holds=holds,
        )

    def places(self, rule: Rule) -> list[str]:
        return names_of_stores(rule, attached_at__isnull=False)

    def detached_places(self, rule: Rule) -> list[str]:
        return names_of_stores(rule, attached_at__isnull=True)

    def at_place(self, rows: QuerySet[Any], place: str) -> QuerySet[Any]:
        return rows.filter(store=SessionStore.objects.filter(name=place).values("pk")[:1])

    def begin(self, place: str) -> None:
        """Checks the time zone, and looks through a store without triggers, so that recent activity is known."""
        store = store_named(place)
        if store.attached_at is None:
            raise CannotSweep(f"{store.name}: {KeptReason.SENTENCES[KeptReason.DETACHED]}")
        if not has_triggers(store):
            # It finds times in another zone, too.
            discover_changes(store)
        for problem in registry.check(store).problems:
            if problem.code in ZONE_PROBLEMS:
                raise CannotSweep(f"Nothing expires in {store.name}: its times are not certain. {problem.sentence}")
        taken_over = SessionRecord.objects.filter(BEING_ERASED).values("pk")
        UnfinishedExpiry.objects.filter(record_id__in=taken_over).delete()


ZONE_PROBLEMS = ("wrong-zone", "zone-differs")
"""Codes of health problems because of which the age of sessions and items is not known."""

CLOCKS = {"last_activity": "last_activity_at", "created": "registered_at"}


@register
class SessionTarget(RecordTarget):
    name = "sessions"
    title = "Sessions"
    actions = (Action.DELETE,)
    clocks: ClassVar = {"last_activity": "last activity", "created": "creation"}
    remarks = (
        "A session goes as a whole. A session with activity in the last hour stays. After it is gone, agents can begin"
        " a new one under its id."
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
        rows = self.at_place(due.due(rule), place)
        column = CLOCKS[rule.clock]
        found = rows.aggregate(
            rows=Count("pk"), subjects=Count("subject", distinct=True), oldest=Min(column), newest=Max(column)
        )
        items: int | None = 0
        problem = ""
        try:
            ids = rows.values_list("session_id", flat=True).order_by().iterator(COUNTED_AT_ONCE)
            for batch in batches(ids, COUNTED_AT_ONCE if has_triggers(store) else ASKED_AT_ONCE):
                stop_if_asked()
                items = (items or 0) + sum(backend.count_each(batch).values())
        except StoreUnavailable:
            items, problem = None, "The store does not respond: its items are not counted, and a run skips it."
        held = self.at_place(due.held(rule), place).count()
        live = self.at_place(due.live(rule), place).count()
        return PlaceCount(place, items=items, held=held, live=live, problem=problem, **found)

    def take_some(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> Taken:
        store = store_named(result.place)
        backend = backend_for(store)
        taken, at_most = Taken(cursor=result.cursor), max(at_most, FEWEST_ITEMS)
        if Capability.ERASE_SESSIONS not in backend.capabilities:
            count = self.at_place(due.due(rule), result.place).count()
            taken.left = {KeptReason.CANNOT_ERASE: count} if count else {}
            return taken
        in_vain = taken.cursor.get("busy", [])
        batch = list(self.begun(rule, result.place).exclude(pk__in=in_vain)[:SESSIONS_AT_ONCE])
        if not batch and due.rule_of(rule.version):
            batch = self.next_records(due, rule, result, count=sessions_for(at_most, result))
            if batch and (whole := self.take_whole(backend, batch, at_most)):
                return whole
            if noting.note(backend, batch, rule):
                taken.passed = 1
                return taken
        is_in_order = bool(batch)
        if not batch:
            batch = noting.gone_uncounted(backend, self.noted(rule, result.place))
        until = monotonic() + CHUNK_SECONDS
        for record in batch:
            try:
                if not take_one(backend, record, taken, rule, at_most=at_most):
                    return taken
            except DeletionRefused:
                taken.held += 1
                let_go_on(record)
            except StillActive:
                taken.leave(KeptReason.ACTIVE)
            except Gone:
                pass
            except (SessionBusy, SessionUnreadable) as problem:
                taken.leave(KeptReason.BUSY if isinstance(problem, SessionBusy) else KeptReason.UNREADABLE)
                if record.erased_at:
                    taken.cursor = {**taken.cursor, "busy": [*taken.cursor.get("busy", []), str(record.pk)]}
            except StoreUnavailable:
                if taken.passed:
                    # What went is counted; the next chunk meets the problem first.
                    return taken
                raise
            taken.passed += 1
            if not record.erased_at and not has_triggers(store):
                noting.forget(record)
            if not record.erased_at and is_in_order:
                taken.cursor = {**taken.cursor, **place_of(record, CLOCKS[rule.clock])}
            if taken.items >= at_most or monotonic() > until:
                break
        return taken

    def has_begun(self, rule: Rule, place: str) -> bool:
        return self.begun(rule, place).exists() or self.noted(rule, place).exists()

    def noted(self, rule: Rule, place: str) -> QuerySet[SessionRecord]:
        return noting.noted(self.at_place(self.rows(), place), rule)

    def begun(self, rule: Rule, place: str) -> QuerySet[SessionRecord]:
        """Sessions of which some items went under this version, in this run or an earlier one.

        Not those that belong to an erasure by now: it deletes the rest, and keeps the fence.
        """
        unfinished = UnfinishedExpiry.objects.filter(version=rule.version).values("record_id")
        return self.at_place(fenced_by_expiry().filter(pk__in=unfinished), place).select_related("store").order_by("pk")

    def next_records(self, due: DueRows, rule: Rule, result: SweepResult, *, count: int) -> list[SessionRecord]:
        """The next sessions that the rule takes, oldest first, at most `count`."""
        column = CLOCKS[rule.clock]
        rows = self.at_place(due.due(rule), result.place)
        if "at" in result.cursor:
            rows = rows.filter(after(column, result.cursor))
        rows = rows.exclude(BEING_ERASED).select_related("store")
        return list(rows.order_by(column, "pk")[:count])

    def take_whole(self, backend: Backend, batch: Sequence[SessionRecord], at_most: int) -> Taken | None:
        """Deletes the first sessions of the batch together; None if that is not possible: then one by one."""
        try:
            with refusals_explained(), transaction.atomic():
                items = backend.delete_whole([record.session_id for record in batch], at_most=at_most)
                gone = [record for record in batch if record.session_id in items]
                if not gone:
                    return None
                refuse_changed(gone)
                tables = added(delete_what_hung_on(gone), delete_records(gone))
        except (DeletionRefused, StillActive, Gone):
            return None
        # A session without items counts, too.
        count = sum(items.values())
        return Taken(
            passed=len(gone) + count, taken=len(gone), items=count, tables=tables, shown=[record.pk for record in gone]
        )


def sessions_for(at_most: int, result: SweepResult) -> int:
    """Number of sessions to read for a chunk of so many items: twice as many as fit, by those that went before."""
    if not result.taken:
        return SESSIONS_AT_ONCE
    items_each = max(result.items // result.taken, 1)
    return min(SESSIONS_AT_ONCE, 2 * at_most // items_each + 1)


class StillActive(Exception):
    """An agent wrote to the session, or an operator changed it, after it was selected. Nothing was changed."""


class Gone(Exception):
    """Another run or an erasure has taken the session meanwhile. Nothing was changed."""


def take_one(backend: Backend, record: SessionRecord, taken: Taken, rule: Rule, *, at_most: int) -> bool:
    """Deletes items of one session; true if it is gone. Raises DeletionRefused, StillActive, Gone, StoreUnavailable."""
    is_begun, is_here = record.erased_at is not None, has_triggers(record.store)
    tables: dict[str, int] = {}
    with refusals_explained(), transaction.atomic():
        if is_begun:
            # Holds are asked for the session's first chunk by a trigger, and for the others here.
            check_deletion(records=[record.pk])
            lock_begun(record)
        elif not is_here:
            # What is deleted in another system does not come back: all that can refuse comes first.
            mark_erased(record.store, [record.session_id])
            refuse_changed([record])
            refuse_unseen_activity(backend, record)
            tables = delete_what_hung_on([record])
        noted, room = 0 if is_here else noting.noted_items(record), max(at_most - taken.items, 1)
        if not is_here and not is_begun and noted > room:
            # Its fence is committed before a part of it goes, and it goes in the next chunks.
            deleted = Deleted(0, noted)
        else:
            deleted = backend.delete_some(record.session_id, at_most=room)
        if not deleted.left:
            deleted = Deleted(max(deleted.count, noted), 0)
        if is_here and not is_begun:
            refuse_changed([record])
            tables = delete_what_hung_on([record])
        if is_begun and not deleted.left:
            # An inspection that had begun before may have noted something since.
            tables = delete_what_hung_on([record])
        if deleted.left:
            UnfinishedExpiry.objects.get_or_create(record_id=record.pk, defaults={"version_id": rule.version})
            if not is_here:
                noting.count_off(record, deleted.count)
        else:
            UnfinishedExpiry.objects.filter(record_id=record.pk).delete()
            tables = added(tables, delete_records([record]))
    taken.tables = added(taken.tables, tables)
    taken.items += deleted.count
    taken.passed += deleted.count
    if deleted.left:
        # What a chunk does must be saved before the next one, also if nothing went.
        taken.passed = max(taken.passed, 1)
        return False
    taken.taken += 1
    taken.shown.append(record.pk)
    return True


def fenced_by_expiry() -> QuerySet[SessionRecord]:
    """Sessions that are marked as erased, and belong to no erasure."""
    return SessionRecord.objects.filter(erased_at__isnull=False, is_forgotten=False).exclude(
        Exists(Subject.objects.filter(pk=OuterRef("subject"), erased_at__isnull=False))
    )


def lock_begun(record: SessionRecord) -> None:
    """Keeps an erasure from taking the session over before the transaction ends. Raises Gone if one did.

    Not the lock that writers wait for: agents lock in another order.
    """
    if not fenced_by_expiry().select_for_update(no_key=True, of=("self",)).filter(pk=record.pk).exists():
        raise Gone


def let_go_on(record: SessionRecord) -> None:
    """Takes the fence down of a session of which some items are gone and the rest must be kept."""
    if record.erased_at and UnfinishedExpiry.objects.filter(record_id=record.pk).delete()[0]:
        backend_for(record.store).show_rest(record.session_id)
        SessionRecord.objects.filter(pk=record.pk).update(erased_at=None)


def refuse_changed(records: Sequence[SessionRecord]) -> None:
    """Raises StillActive if one of them changed since it was read, and Gone if it is not there any more.

    Their rows are locked by the deletion. Of one that was gone it made a new row, which goes with the transaction.
    """
    after = {record.pk: seen(record) for record in SessionRecord.objects.filter(pk__in=[each.pk for each in records])}
    for record in records:
        if record.pk not in after:
            raise Gone
        if after[record.pk] != seen(record):
            raise StillActive


def seen(record: SessionRecord) -> tuple[Any, ...]:
    """What policies look at, of a record."""
    return (
        record.activity_count,
        record.last_activity_at,
        record.subject_id,
        record.agent,
        record.labels,
        record.is_encrypted,
    )


def refuse_unseen_activity(backend: Backend, record: SessionRecord) -> None:
    """Raises StillActive if an agent wrote to a session since it was last discovered: no trigger tells of it.

    One request, which cannot close the moment until the deletion.
    """
    if has_triggers(record.store):
        return
    found = backend.look_up([record.session_id]).get(record.session_id)
    if found and found.mark:
        if found.mark != record.change_mark:
            raise StillActive
    elif found and Capability.ITEM_TIMES in backend.capabilities:
        newest = [item.written_at for item in backend.last_page(record.session_id, 1).items if item.written_at]
        if newest and newest[0] > record.last_activity_at + CLOCK_DIFFERENCE:
            raise StillActive


CLOCK_DIFFERENCE = timedelta(minutes=1)
"""By which times of a store and of its registry row may differ without activity between them."""


def has_triggers(store: SessionStore) -> bool:
    """Whether the agents' tables tell the registry of each write."""
    return Capability.FENCE in backend_for(store).capabilities


def place_of(record: SessionRecord, column: str) -> dict[str, Any]:
    """Cursor behind a record in the order of a clock. Contains no personal data."""
    return {"at": getattr(record, column).isoformat(), "id": str(record.pk)}


def after(column: str, cursor: Mapping[str, Any]) -> Q:
    """Condition of rows beyond a cursor; the first part is what an index can find."""
    beyond = Q(**{f"{column}__gt": cursor["at"]}) | Q(pk__gt=cursor["id"])
    return Q(**{f"{column}__gte": cursor["at"]}) & beyond


def names_of_stores(rule: Rule, **condition: bool) -> list[str]:
    stores = SessionStore.objects.filter(**condition)
    if "store" in rule.scope:
        stores = stores.filter(name=rule.scope["store"])
    return sorted(stores.values_list("name", flat=True))


def store_named(name: str) -> SessionStore:
    """Raises CannotSweep if it was removed, or has another name, since the run began."""
    store = SessionStore.objects.filter(name=name).first()
    if store is None:
        raise CannotSweep(f"The store {name} was removed or renamed.")
    return store


def batches(values: Any, size: int) -> Any:
    batch: list[str] = []
    for value in values:
        batch.append(value)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
