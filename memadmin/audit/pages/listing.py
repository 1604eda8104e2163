"""Rows of the log pages: actor, object, subject and index in the tree of each event, and related events."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memadmin.audit.log import event_names, types
from memadmin.audit.log.label_registry import SUBJECT, Name, Names, short
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent, AuditLeaf


@dataclass(frozen=True, slots=True)
class Who:
    """An actor, by the name stored beside the log; without a name after its erasure."""

    ref: uuid.UUID
    kind: str
    label: str

    @property
    def is_erased(self) -> bool:
        return not self.label

    @property
    def kind_label(self) -> str:
        return str(ActorKind(self.kind).label) if self.kind in ActorKind.values else self.kind

    @property
    def is_person(self) -> bool:
        return self.kind == ActorKind.PERSON

    def __str__(self) -> str:
        return self.label or f"erased {short(self.ref)}"


@dataclass(slots=True)
class ListedEvent:
    event: AuditEvent
    who: Who
    role: Who
    object: Name | None
    subject: Name | None
    leaf_index: int | None
    is_signed: bool
    rows: list[ListedEvent] = field(default_factory=list)
    """The row changes of this event, as far as they are on the page."""
    cause: AuditEvent | None = None
    """The event of the verb that made this row change, if the row is not shown below it."""

    @property
    def is_outside(self) -> bool:
        """Whether a row was changed without a verb of the console."""
        return event_names.is_row(self.event.type) and self.event.cause is None

    @property
    def is_raw(self) -> bool:
        """Whether the database role is the only known actor."""
        return self.is_outside and self.event.actor_kind == ActorKind.DATABASE

    @property
    def is_agents(self) -> bool:
        """Whether an agent changed it under the agents' role; its label is the name that the agent states."""
        return self.is_outside and self.event.actor_kind == ActorKind.AGENT

    @property
    def meaning(self) -> str:
        event_type = types.known(self.event.type)
        # The register is written for Markdown.
        return event_type.meaning.replace("`", "") if event_type else ""

    @property
    def counters(self) -> list[str]:
        return [counted(count, name) for name, count in sorted(self.event.counters.items())]

    @property
    def reason(self) -> str:
        return self.event.reason_code.replace("_", " ")

    @property
    def shown_count(self) -> int:
        return len(self.event.shown)


def counted(count: int, name: str) -> str:
    """`{"items": 1}` as "1 item", `{"memories": 1}` as "1 memory"."""
    words = name.replace("_", " ")
    if count == 1:
        words = f"{words[:-3]}y" if words.endswith("ies") else words.removesuffix("s")
    return f"{count:,} {words}"


def listed(events: Sequence[AuditEvent], names: Names, *, signed_size: int) -> list[ListedEvent]:
    """The events in the given order, row changes below the verb of the same page. Three queries, and those for names.

    `names` has the labels that the viewer may see; leaves before `signed_size` are covered by a checkpoint.
    """
    return folded(described(events, names, signed_size=signed_size))


def described(events: Sequence[AuditEvent], names: Names, *, signed_size: int = 0) -> list[ListedEvent]:
    """The events without nesting. Two queries, and those for names."""
    for event in events:
        names.want(event.object_kind, event.object_ref)
        names.want(SUBJECT, event.subject_ref)
    known = actors_of(events)
    places = leaf_indexes(events)
    return [
        ListedEvent(
            event=event,
            who=who(known, event.actor_ref, event.actor_kind),
            role=who(known, event.role_ref, ActorKind.DATABASE),
            object=names.of(event.object_kind, event.object_ref) if event.object_kind and event.object_ref else None,
            subject=names.of(SUBJECT, event.subject_ref) if event.subject_ref else None,
            leaf_index=places.get(event.number),
            is_signed=places.get(event.number, signed_size) < signed_size,
        )
        for event in events
    ]


def folded(rows: Sequence[ListedEvent]) -> list[ListedEvent]:
    by_id = {row.event.id: row for row in rows}
    elsewhere = AuditEvent.objects.filter(
        id__in={row.event.cause for row in rows if row.event.cause and row.event.cause not in by_id}
    )
    causes = {cause.id: cause for cause in elsewhere}
    top_rows = []
    for row in rows:
        verb = by_id.get(row.event.cause) if row.event.cause else None
        if verb is None:
            row.cause = causes.get(row.event.cause) if row.event.cause else None
            top_rows.append(row)
        else:
            # The list is newest first; changes by one verb are in the order of execution.
            verb.rows.insert(0, row)
    return top_rows


def actors_of(events: Iterable[AuditEvent]) -> Mapping[uuid.UUID, AuditActor]:
    refs = {ref for event in events for ref in (event.actor_ref, event.role_ref)}
    return AuditActor.objects.in_bulk(refs)


def who(known: Mapping[uuid.UUID, AuditActor], ref: uuid.UUID, kind: str) -> Who:
    actor = known.get(ref)
    return Who(ref, kind, actor.label if actor else "")


def leaf_indexes(events: Iterable[AuditEvent]) -> dict[int, int]:
    """Indexes of events in the tree, by number; events without an index yet are missing."""
    leaves = AuditLeaf.objects.filter(event_number__in=[event.number for event in events])
    return dict(leaves.values_list("event_number", "index"))
