"""Targets: memories, proposals, and what agents and people said about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, cast

from django.db import transaction
from django.db.models import (
    DateTimeField,
    Exists,
    Expression,
    F,
    Max,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce, Greatest, Now

from memadmin import audit
from memadmin.retention.models import SweepResult
from memadmin.retention.policies.rules import OF_APPROVED, Action, Facts, Rule
from memadmin.retention.targets.base import (
    IsHeldSubject,
    RetentionTarget,
    SweepChunk,
    after,
    first_kind,
    held_session_q,
    of_record,
    register,
    subject_kind_q,
    tables_of,
)
from memadmin.retention.targets.due_rows import DueRows
from memories_app import audit_events as memory_events
from memories_app.models import Evidence, Memory, Recall, RecalledMemory, Signal
from memories_app.services.retiring import ask_revalidation
from sessions_app.models import SessionRecord
from sessions_app.services.deletion_guards import DeletionRefused, refusals_explained


class RowTarget(RetentionTarget):
    """A target with rows of one of our own tables, in the order of their keys."""

    order: Sequence[str] = ("pk",)
    """Columns by which chunks follow each other; the key is the last."""

    def cursor_at(self, row: Sequence[Any]) -> dict[str, str]:
        """Cursor behind a row with the values of `order`."""
        return {"id": str(row[-1])}

    def beyond(self, cursor: Mapping[str, Any]) -> Q:
        """Condition of rows behind a cursor."""
        return Q(pk__gt=cursor["id"])

    def expire_chunk(self, due: DueRows, rule: Rule, result: SweepResult, *, at_most: int) -> SweepChunk:
        rows = due.due(rule)
        if result.cursor:
            rows = rows.filter(self.beyond(result.cursor))
        found = list(rows.order_by(*self.order).values_list(*self.order)[:at_most])
        if not found:
            return SweepChunk()
        keys = [row[-1] for row in found]
        chunk = SweepChunk(passed=len(keys), cursor=self.cursor_at(found[-1]))
        # Another process that works on a row comes first; the next run takes what is left.
        locked = due.due(rule).filter(pk__in=keys).select_for_update(skip_locked=True, of=("self",))
        chosen = list(locked.values_list("pk", flat=True))
        if not self.expire_all(rule, rows, chosen, chunk):
            # One is held by what the query does not see: the others go all the same.
            for key in chosen:
                chunk.held += not self.expire_all(rule, rows, [key], chunk)
        return chunk

    def expire_all(self, rule: Rule, rows: QuerySet[Any], keys: Sequence[Any], chunk: SweepChunk) -> bool:
        """Carries the rule out on all of these rows; false, and on none, if a hold keeps one of them."""
        try:
            with refusals_explained(), transaction.atomic():
                tables = self.expire(rule, rows.model._default_manager.filter(pk__in=keys))
        except DeletionRefused:
            return False
        chunk.tables.update(tables)
        chunk.taken += len(keys)
        return True

    def expire(self, rule: Rule, rows: QuerySet[Any]) -> dict[str, int]:
        """Carries the rule's action out on these rows, which are few; returns rows by table."""
        return tables_of(rows.delete()[1])


LAST_RECALL = RecalledMemory.objects.filter(memory=OuterRef("pk")).order_by("-recalled_at").values("recalled_at")[:1]


class AnyMemoryTarget(RowTarget):
    conditions: Mapping[str, Callable[[Any], Q]] = {
        "agent": lambda name: Q(agents__contains=[name]),
        "subject_kind": subject_kind_q,
        "kind": lambda kind: Q(kind=kind),
        "status": lambda status: Q(status=status),
    }

    def clock(self, name: str) -> Expression | F:
        decided = Coalesce(F("decided_at"), F("proposed_at"))
        if name == "recalled":
            return Greatest(Coalesce(Subquery(LAST_RECALL), decided, output_field=DateTimeField()), decided)
        return decided if name == "decided" else F("proposed_at")

    def held(self) -> Q:
        sources = SessionRecord.objects.filter(
            held_session_q(), pk__in=Evidence.objects.filter(memory=OuterRef(OuterRef("pk"))).values("record_id")
        )
        return Q(IsHeldSubject(F("subject_id"))) | Q(Exists(sources))

    def facts(self, row: Memory, holds: Sequence[int] = ()) -> Facts:
        """Three queries at most; fewer where subject and aliases are loaded, and `last_recalled_at` was annotated."""
        decided = row.decided_at or row.proposed_at
        if hasattr(row, "last_recalled_at"):
            last = row.last_recalled_at
        else:
            last = RecalledMemory.objects.filter(memory=row).aggregate(last=Max("recalled_at"))["last"]
        return Facts(
            target=self.name,
            scope={
                "agent": list(row.agents),
                "subject_kind": first_kind(row.subject),
                "kind": row.kind,
                "status": row.status,
            },
            clocks={
                "recalled": max(cast(datetime, last or decided), decided),
                "decided": decided,
                "created": row.proposed_at,
            },
            holds=holds,
        )


@register
class MemoryTarget(AnyMemoryTarget):
    name = "memories"
    title = "Memories"
    unit = "memories"
    actions = (Action.REVALIDATE, Action.EXPIRE, Action.DELETE)
    clocks: ClassVar = {"recalled": "last recall", "decided": "last decision", "created": "creation"}
    choices: ClassVar = {
        "kind": Memory.Kind.choices,
        "status": [choice for choice in Memory.Status.choices if choice[0] != Memory.Status.PROPOSED],
    }
    remarks = (
        "Re-validation and expiry are for approved memories: agents do not recall them any more. Deletion takes"
        " evidence, versions and vectors along."
    )

    def rows(self) -> QuerySet[Memory]:
        return Memory.objects.exclude(status=Memory.Status.PROPOSED)

    def expire(self, rule: Rule, rows: QuerySet[Any]) -> dict[str, int]:
        if rule.action == Action.DELETE:
            return tables_of(rows.delete()[1])
        approved = list(rows.filter(status=Memory.Status.APPROVED).defer("embedding", "words"))
        for memory in approved:
            if rule.action == Action.REVALIDATE:
                ask_revalidation(memory)
            else:
                end_memory(memory)
        return {"memories_app_memory": len(approved)}

    def scope_q(self, rule: Rule) -> Q:
        condition = super().scope_q(rule)
        if rule.action in OF_APPROVED:
            condition &= Q(status=Memory.Status.APPROVED)
        return condition


def end_memory(memory: Memory) -> None:
    audit.record(memory_events.MEMORY_EXPIRED, target=memory, subject=memory.subject_id, reason_code="unused")
    Memory.objects.filter(pk=memory.pk).update(status=Memory.Status.EXPIRED, decided_at=Now())


@register
class ProposalTarget(AnyMemoryTarget):
    name = "proposals"
    title = "Proposals"
    unit = "proposals"
    actions = (Action.DELETE,)
    clocks: ClassVar = {"created": "creation"}
    choices: ClassVar = {"kind": Memory.Kind.choices}
    remarks = "Proposals that nobody has decided."

    def rows(self) -> QuerySet[Memory]:
        return Memory.objects.filter(status=Memory.Status.PROPOSED)


class SessionRowTarget(RowTarget):
    """Rows that belong to a session or a subject."""

    actions = (Action.DELETE,)
    column: ClassVar[str]
    """Name of the column with the time at which the row was made."""
    clocks: ClassVar = {"created": "creation"}
    conditions: Mapping[str, Callable[[Any], Q]] = {
        "store": of_record(store__name=str),
        "label": of_record(labels__contains=lambda label: [label]),
        "agent": lambda name: Q(agent=name),
        "subject_kind": subject_kind_q,
    }

    @property
    def order(self) -> Sequence[str]:  # type: ignore[override]
        """The oldest first, along an index: these tables have a row for each run of an agent."""
        return (self.column, "pk")

    def cursor_at(self, row: Sequence[Any]) -> dict[str, str]:
        return {"at": row[0].isoformat(), "id": str(row[-1])}

    def beyond(self, cursor: Mapping[str, Any]) -> Q:
        return after(self.column, cursor)

    def clock(self, name: str) -> F:
        return F(self.column)

    def held(self) -> Q:
        sessions = SessionRecord.objects.filter(held_session_q(), pk=OuterRef("record_id"))
        return Q(IsHeldSubject(F("subject_id"))) | Q(Exists(sessions))

    def facts(self, row: Any, holds: Sequence[int] = ()) -> Facts:
        """Four queries at most."""
        record = SessionRecord.objects.filter(pk=row.record_id).select_related("store").first()
        return Facts(
            target=self.name,
            scope={
                "store": record.store.name if record else "",
                "label": list(record.labels) if record else [],
                "agent": row.agent,
                "subject_kind": first_kind(row.subject),
                "kind": getattr(row, "kind", ""),
            },
            clocks={"created": getattr(row, self.column)},
            holds=holds,
        )


@register
class SignalTarget(SessionRowTarget):
    name = "signals"
    title = "Signals"
    unit = "signals"
    column = "created_at"
    conditions = {**SessionRowTarget.conditions, "kind": lambda kind: Q(kind=kind)}  # noqa: RUF012
    choices: ClassVar = {"kind": Signal.Kind.choices}
    remarks = "Corrections, wishes, ratings and feedback, from which memories are learned."

    def rows(self) -> QuerySet[Signal]:
        return Signal.objects.all()


@register
class RecallTarget(SessionRowTarget):
    name = "recalls"
    title = "Recalls"
    unit = "recalls"
    column = "recalled_at"
    remarks = "Which memories an agent was given, and when. The last recall of a memory is a clock of memories."

    def rows(self) -> QuerySet[Recall]:
        return Recall.objects.all()

    def expire(self, rule: Rule, rows: QuerySet[Any]) -> dict[str, int]:
        keys = list(rows.values_list("pk", flat=True))
        gone = RecalledMemory.objects.filter(recall__in=keys).delete()[1]
        return tables_of(gone) | tables_of(rows.delete()[1])
