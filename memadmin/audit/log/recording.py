"""Writing events: in the transaction of a change, alone, or before something is shown."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from django.db import DEFAULT_DB_ALIAS, Error, connections, transaction
from django.db.models import Model

from memadmin import log_context
from memadmin.audit.log import actors, ids, proofs
from memadmin.audit.log.actors import Actor
from memadmin.audit.log.types import EventType
from memadmin.rehearsal import Rehearsal

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

By: TypeAlias = "User | AnonymousUser | Actor | None"

MOST_SHOWN = 1000

HEX = "{:032x}".format
"""Text of a UUID, from its number."""

INSERT_EVENT = """
INSERT INTO audit_event (id, type, actor_kind, actor_ref, object_kind, object_ref, subject_ref, shown, outcome,
                         reason_code, counters, commitment, request_id, job_id)
VALUES (%(id)s, %(type)s, %(actor_kind)s::text, {actor_ref}, %(object_kind)s, %(object_ref)s, %(subject_ref)s,
        %(shown)s, %(outcome)s, %(reason_code)s, %(counters)s, %(commitment)s, %(request_id)s, %(job_id)s)
RETURNING set_config('memadmin.cause', id::text, true)
"""
# Without an actor the database takes the role of the connection.
INSERT_BY_ROLE = INSERT_EVENT.format(actor_ref="NULL")
INSERT_BY_ACTOR = INSERT_EVENT.format(
    actor_ref="memadmin_acting(%(actor_kind)s::text, %(label)s, %(user_id)s, %(proof)s)"
)
WITH_DETAIL = """
WITH detail AS (INSERT INTO audit_detail (event_id, salt, details) VALUES (%(id)s, %(salt)s, %(details)s))
"""
PROVE = "SELECT memadmin_acting(%s, %s, %s, %s)"
SET_CAUSE = "SELECT set_config('memadmin.cause', memadmin_name_cause(%s, %s), true)"


class NotInTransaction(Exception):
    """An event must be committed with the change that it records: a programming error."""


class AuditUnavailable(Exception):
    """The log cannot be written, so nothing may be shown."""

    def __init__(self) -> None:
        super().__init__("The audit log cannot be written at the moment, so no content is shown.")


class Columns(TypedDict, total=False):
    """Columns of an event that a caller may set."""

    target: Model | None
    subject: Model | uuid.UUID | None
    shown: Iterable[Model | uuid.UUID]
    outcome: str
    reason_code: str
    counters: Mapping[str, int] | None
    details: Mapping[str, Any] | None


@dataclass(slots=True)
class Recording:
    """An event being recorded; values known only after the change may be set until its block ends."""

    id: uuid.UUID
    target: Model | None = None
    subject: Model | uuid.UUID | None = None
    shown: Iterable[Model | uuid.UUID] = ()
    outcome: str = "succeeded"
    reason_code: str = ""
    counters: Mapping[str, int] | None = None
    details: Mapping[str, Any] | None = None
    is_void: bool = False
    """Set when nothing happened: then no event is written."""


def record(
    event_type: EventType, *, by: By = None, using: str = DEFAULT_DB_ALIAS, **columns: Unpack[Columns]
) -> uuid.UUID:
    """Writes an event into the caller's transaction, and returns its id. One query.

    Call it before the change itself, so that events of triggers have this event as their cause. Raises
    NotInTransaction, and Undeclared for values that the type does not declare. Only `details` may contain free text and
    values; they can be erased.
    """
    _require_transaction(event_type, using)
    return _write(event_type, Recording(ids.uuid7(), **columns), _actor(by), using)


def record_each(
    event_type: EventType, several: Iterable[Columns], *, by: By = None, using: str = DEFAULT_DB_ALIAS
) -> None:
    """Like `record` for each of several objects of one change, none of them with details. One round trip for all.

    Events of triggers have the last event as their cause.
    """
    _require_transaction(event_type, using)
    actor, events = _actor(by), [Recording(ids.uuid7(), **columns) for columns in several]
    assert all(event.details is None for event in events)
    if not events:
        return
    with proofs.cursor_for_proofs(connections[using]) as cursor:
        cursor.executemany(_insert_of(actor), [_values(event_type, event, actor) for event in events])
    for event in events:
        log_context.note_event(event.id)


@contextmanager
def recording(event_type: EventType, *, by: By = None, using: str = DEFAULT_DB_ALIAS) -> Iterator[Recording]:
    """Like `record`, around a change with values known only afterwards: a new key, a count. Two queries."""
    _require_transaction(event_type, using)
    event = Recording(ids.uuid7())
    with proofs.cursor_for_proofs(connections[using]) as cursor:
        cursor.execute(SET_CAUSE, [event.id, proofs.proof_of("cause", str(event.id), None)])
    yield event
    if not event.is_void:
        _write(event_type, event, _actor(by), using)


def record_alone(
    event_type: EventType, *, by: By = None, using: str = DEFAULT_DB_ALIAS, **columns: Unpack[Columns]
) -> uuid.UUID:
    """Like `record`, in a transaction of its own: for denied or failed actions, after their own was rolled back.

    In a rehearsal of an action it is written if its response is sent, and before it is.
    """
    event = Recording(ids.uuid7(), **columns)
    if rehearsal := Rehearsal.current():
        rehearsal.note(partial(_write, event_type, event, _actor(by), using))
        return event.id
    if not connections[using].in_atomic_block:
        # A single statement is its own transaction and saves the round trips that begin and commit one.
        return _write(event_type, event, _actor(by), using)
    with transaction.atomic(using=using, durable=True):
        return _write(event_type, event, _actor(by), using)


def prove(by: By = None, *, using: str = DEFAULT_DB_ALIAS) -> None:
    """Proves the actor of this transaction to the database as `record` does, without an event. One query."""
    if actor := _actor(by):
        with proofs.cursor_for_proofs(connections[using]) as cursor:
            cursor.execute(PROVE, actor.proven)


def before_showing(event_type: EventType, *, by: By = None, **columns: Unpack[Columns]) -> uuid.UUID:
    """Commits an event before content is shown. Raises AuditUnavailable; then nothing may be shown."""
    try:
        return record_alone(event_type, by=by, **columns)
    except Error as problem:
        raise AuditUnavailable from problem


def commitment_to(salt: bytes, details: str) -> bytes:
    """The event's commitment to its details: reveals nothing once the salt is erased."""
    return hashlib.sha256(salt + details.encode()).digest()


def _write(event_type: EventType, event: Recording, actor: Actor | None, using: str) -> uuid.UUID:
    values, insert = _values(event_type, event, actor), _insert_of(actor)
    if event.details is not None:
        values["salt"] = os.urandom(32)
        values["details"] = json.dumps(
            event.details, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str
        )
        values["commitment"] = commitment_to(values["salt"], values["details"])
        insert = WITH_DETAIL + insert
    with proofs.cursor_for_proofs(connections[using]) as cursor:
        cursor.execute(insert, values)
    log_context.note_event(event.id)
    return event.id


def _insert_of(actor: Actor | None) -> str:
    return INSERT_BY_ACTOR if actor else INSERT_BY_ROLE


def _values(event_type: EventType, event: Recording, actor: Actor | None) -> dict[str, Any]:
    """Parameters of the statement that inserts an event without details. Raises Undeclared."""
    object_kind = None if event.target is None else ids.kind_of(event.target)
    counters = dict(event.counters or {})
    event_type.check(object_kind=object_kind, counters=counters, reason_code=event.reason_code)
    shown = sorted({_ref(thing).int for thing in event.shown})
    if len(shown) > MOST_SHOWN:
        raise ValueError(f"{event_type.name} names {len(shown)} things; an event names at most {MOST_SHOWN}.")
    request_id, job_id = log_context.ids_for_events()
    kind, label, user_id, proof = actor.proven if actor else ("database", None, None, None)
    return {
        "id": event.id,
        "type": event_type.name,
        "actor_kind": kind,
        "label": label,
        "user_id": user_id,
        "proof": proof,
        "object_kind": object_kind,
        "object_ref": None if event.target is None else ids.ref_of(event.target),
        "subject_ref": None if event.subject is None else _ref(event.subject),
        # A PostgreSQL literal: psycopg takes longer to adapt a page of ids than PostgreSQL takes for the event.
        "shown": f"{{{','.join(map(HEX, shown))}}}",
        "outcome": event.outcome,
        "reason_code": event.reason_code,
        "counters": json.dumps(counters),
        "commitment": None,
        "request_id": request_id,
        "job_id": job_id,
    }


def _require_transaction(event_type: EventType, using: str) -> None:
    if not connections[using].in_atomic_block:
        raise NotInTransaction(f"{event_type.name} must be recorded inside a transaction.")


def _actor(by: By) -> Actor | None:
    if by is None:
        return actors.current_actor()
    if isinstance(by, Actor):
        return by
    return actors.person(by) if by.is_authenticated else actors.NOT_SIGNED_IN


def _ref(thing: Model | uuid.UUID) -> uuid.UUID:
    return thing if isinstance(thing, uuid.UUID) else ids.ref_of(thing)
