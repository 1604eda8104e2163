"""Rows of the log pages: actor, object, subject and index in the tree of each event, and related events."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from memadmin.audit.audit_events import ACTOR_NAMED
from memadmin.audit.log import event_names, sentences, types
from memadmin.audit.log.actors import NOT_SIGNED_IN
from memadmin.audit.log.label_registry import SUBJECT, Name, Names, short
from memadmin.audit.log.sentences import Sentence
from memadmin.audit.models import ActorKind, AuditActor, AuditEvent, AuditLeaf
from memadmin.counting import counted


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

    @property
    def words(self) -> str:
        """The actor in a sentence: the name of a person, and "background job verify_log"."""
        if self.kind == ActorKind.SYSTEM and self.label == NOT_SIGNED_IN.label:
            return "somebody not signed in"
        return str(self) if self.is_person else f"{self.kind_label} {self}"

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
        return [counted(count, name.replace("_", " ")) for name, count in sorted(self.event.counters.items())]

    @property
    def item_count(self) -> int | None:
        """Items that a read showed; None of an event that counts none."""
        count: int | None = self.event.counters.get("items")
        return count

    @property
    def reason(self) -> str:
        event_type = types.known(self.event.type)
        code = self.event.reason_code
        return event_type.reason_words(code) if event_type else code.replace("_", " ")

    @property
    def sentence(self) -> Sentence:
        """Sentence of the event; of a type that is no longer declared its name."""
        return sentences.filled(self.template, self.values)

    @property
    def template(self) -> str:
        event_type = types.known(self.event.type)
        if event_type and event_type.sentence:
            return event_type.sentence
        words = self.event.type.replace(".", " ").replace("_", " ")
        return f"{{actor}}: {words}[: {{object}}]"

    @property
    def values(self) -> dict[str, Sequence[Name]]:
        values: dict[str, Sequence[Name]] = {
            name: [Name(counted(count, name.replace("_", " ")))] for name, count in self.event.counters.items()
        }
        values["actor"] = [Name(self.who.words)]
        if self.subject:
            values["subject"] = [self.subject]
        if self.object:
            values["object"] = [self.object, *self._of_subject]
        return values

    @property
    def _of_subject(self) -> Sequence[Name]:
        is_said = "{subject}" in self.template or self.event.subject_ref == self.event.object_ref
        return [] if is_said or not self.subject else [Name(" of "), self.subject]

    @property
    def notes(self) -> list[str]:
        """Names and counts without a slot in the sentence, and the number of further records."""
        slots = sentences.slots_of(self.template)
        notes = [] if "actor" in slots else [f"by {self.who.words}"]
        if self.object and "object" not in slots:
            notes.append(self.object.text)
        if self.subject and "subject" not in slots and not ("object" in slots and self.object):
            notes.append(f"about {self.subject.text}")
        notes += [
            counted(count, name.replace("_", " "))
            for name, count in sorted(self.event.counters.items())
            if name not in slots
        ]
        if self.shown_count and not self.event.counters:
            notes.append(counted(self.shown_count, "further records" if self.object else "records"))
        return notes

    @property
    def shown_count(self) -> int:
        return len(further_records(self.event))


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


def further_records(event: AuditEvent) -> list[uuid.UUID]:
    """The ids of `shown`; none for the event of a name, in which they are a hash of it."""
    return [] if event.type == ACTOR_NAMED.name else event.shown


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
