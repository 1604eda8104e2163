"""Changes of session records: subject, labels, and locks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import transaction
from django.db.models import CharField, Func, Q, Value

from memadmin import audit
from sessions_app import audit_events
from sessions_app.models import SessionRecord, Subject, SubjectSource
from sessions_app.services.deletion_guards import refusals_explained
from sessions_app.services.subjects import erasure_explained, merge_target


class BadLabel(Exception):
    def __init__(self) -> None:
        super().__init__(f"A label has 1 to {label_length()} characters, and no NUL.")


def attach_sessions(
    records: Iterable[SessionRecord], subject: Subject, *, by: User, why: audit.Why = audit.UNSAID
) -> int:
    """Sets the subject of sessions by an operator's hand; returns how many. Erased ones have none."""
    target = merge_target(subject)
    event = SessionChangeDetails(audit_events.SESSIONS_ATTACHED, by, subject=target, why=why)
    return update_records(records, event, subject=target, subject_source=SubjectSource.OPERATOR)


def detach_sessions(records: Iterable[SessionRecord], *, by: User, why: audit.Why = audit.UNSAID) -> int:
    """Removes the subject of sessions; returns how many. Patterns no longer change them."""
    event = SessionChangeDetails(audit_events.SESSIONS_DETACHED, by, why=why)
    return update_records(records, event, subject=None, subject_source=SubjectSource.OPERATOR)


@dataclass(frozen=True, slots=True)
class SubjectChange:
    """A change of the subject of sessions, as it is undone."""

    subject_id: UUID | None
    """The new subject; None after a detachment."""
    before: Sequence[tuple[UUID, UUID | None, str]]
    """For each session its id, the previous subject and where that came from."""


@transaction.atomic
def change_subject(records: Iterable[SessionRecord], subject: Subject | None, *, by: User) -> SubjectChange:
    """Attaches sessions to a subject, or detaches them, as the functions above do; returns what undoes it."""
    changed = locked(records)
    target = subject and merge_target(subject)
    if target:
        attach_sessions(changed, target, by=by)
    else:
        detach_sessions(changed, by=by)
    before = [(record.pk, record.subject_id, record.subject_source) for record in changed]
    return SubjectChange(target.pk if target else None, before)


@transaction.atomic
def undo_subject_change(change: SubjectChange, *, by: User) -> int:
    """Gives sessions the subjects back that they had; returns how many. One changed again meanwhile stays.

    Raises SubjectWasErased and DeletionRefused, with nothing changed.
    """
    ours = Q(subject_id=change.subject_id, subject_source=SubjectSource.OPERATOR)
    known = SessionRecord.objects.filter(pk__in=[pk for pk, _, _ in change.before])
    standing = {record.pk: record for record in locked(known, ours)}
    groups: dict[tuple[UUID | None, str], list[SessionRecord]] = defaultdict(list)
    for record_id, subject_id, source in change.before:
        if record_id in standing:
            groups[subject_id, source].append(standing[record_id])
    subjects = Subject.objects.in_bulk({subject_id for subject_id, _ in groups if subject_id})
    count = 0
    for (subject_id, origin), records in groups.items():
        subject = subjects.get(subject_id) if subject_id else None
        event = SessionChangeDetails(audit_events.ATTACHMENT_UNDONE, by, subject=subject)
        count += update_records(records, event, subject=subject, subject_source=origin)
    return count


def locked(records: Iterable[SessionRecord], condition: Q | None = None) -> list[SessionRecord]:
    """Sessions on record, locked one after the other in the order in which all code locks several, by their session ID:
    a distributed table locks no others. One query for each.
    """
    rows = SessionRecord.objects.on_record().filter(condition or Q()).select_for_update()
    return [
        row
        for record in in_order(records)
        for row in rows.filter(pk=record.pk, store_id=record.store_id, session_id=record.session_id)
    ]


def in_order(records: Iterable[SessionRecord]) -> list[SessionRecord]:
    return sorted(records, key=lambda record: (record.session_id, record.store_id))


def label_sessions(records: Iterable[SessionRecord], label: str, *, by: User) -> int:
    """Adds a label to the sessions that do not have it; returns how many. Raises BadLabel."""
    if not 0 < len(label) <= label_length() or "\0" in label:
        raise BadLabel
    missing = [record for record in records if label not in record.labels]
    # Taken off first, so that two people who add the same one at once add it once.
    event = SessionChangeDetails(audit_events.SESSIONS_LABELLED, by, {"label": label})
    return update_records(missing, event, labels=array("array_append", array("array_remove", "labels", label), label))


def unlabel_sessions(records: Iterable[SessionRecord], label: str, *, by: User) -> int:
    having = [record for record in records if label in record.labels]
    event = SessionChangeDetails(audit_events.SESSIONS_UNLABELLED, by, {"label": label})
    return update_records(having, event, labels=array("array_remove", "labels", label))


def mark_sensitive(records: Iterable[SessionRecord], *, by: User) -> int:
    """Locks sessions: from now on reading their content needs a grant. Returns how many were open before."""
    unlocked = (record for record in records if not record.is_sensitive)
    return update_records(unlocked, SessionChangeDetails(audit_events.SESSIONS_LOCKED, by), is_sensitive=True)


def unmark_sensitive(records: Iterable[SessionRecord], *, by: User) -> int:
    """Unlocks sessions that were locked one by one; those of a locked store stay locked. Returns how many.

    In the transaction that decides about a request to unlock them (`unlocking`): the database refuses another one.
    """
    locked = (record for record in records if record.is_sensitive)
    return update_records(locked, SessionChangeDetails(audit_events.SESSIONS_UNLOCKED, by), is_sensitive=False)


@dataclass(frozen=True, slots=True)
class SessionChangeDetails:
    """Details of a change of sessions for the log."""

    event_type: audit.EventType
    by: User | None
    details: Mapping[str, Any] | None = None
    subject: Subject | None = None
    why: audit.Why = audit.UNSAID


@erasure_explained()
@refusals_explained()
@transaction.atomic
def update_records(records: Iterable[SessionRecord], change: SessionChangeDetails, **changes: Any) -> int:
    """Sets the columns on those of the sessions that were not erased; returns how many, and records it in the log.

    Raises DeletionRefused where a session would lose what keeps it from being deleted, and SubjectWasErased where one
    would come to an erased subject or leave it; nothing is changed then.

    One row at a time in the order of their ids, like all code that locks several: so there is no deadlock, and the
    table can be distributed by session id.
    """
    ordered = in_order(records)
    if not ordered:
        return 0
    with audit.recording(change.event_type, by=change.by) as event:
        changed = [
            record
            for record in ordered
            if SessionRecord.objects.on_record()
            .filter(store_id=record.store_id, session_id=record.session_id)
            .update(**changes)
        ]
        event.is_void = not changed
        one = changed[0] if change.event_type.object and len(changed) == 1 else None
        event.target, event.subject = one, change.subject
        event.shown = () if one else changed
        event.counters = {"sessions": len(changed)} if change.event_type.counters else {}
        event.reason_code, event.details = change.why.code, change.details or change.why.details
    return len(changed)


def array(function: str, labels: str | Func, label: str) -> Func:
    return Func(labels, Value(label), function=function, output_field=ArrayField(CharField()))


def label_length() -> int:
    return SessionRecord._meta.get_field("labels").base_field.max_length or 0
