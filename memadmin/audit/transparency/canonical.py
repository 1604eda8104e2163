"""Canonical JSON (RFC 8785) of an event, the bytes that its leaf hashes, equal in every implementation.

Versions that were written once stay readable for ever: a change of the shape is a new version beside this one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

import rfc8785

from memadmin.audit.models import AuditEvent
from memadmin.audit.transparency.tree import leaf_hash

VERSION = 1


def body_of(event: AuditEvent) -> dict[str, Any]:
    """The hashed form of an event, also used in exports and proofs. Absent values are null."""
    return {
        "v": VERSION,
        "number": event.number,
        "id": str(event.id),
        "type": event.type,
        "at": utc(event.at),
        "actor_kind": event.actor_kind,
        "actor": str(event.actor_ref),
        "role": str(event.role_ref),
        "object_kind": event.object_kind,
        "object": _text(event.object_ref),
        "subject": _text(event.subject_ref),
        "shown": sorted(map(str, event.shown)),
        "outcome": event.outcome,
        "reason": event.reason_code,
        "counters": event.counters,
        "cause": _text(event.cause),
        "commitment": None if event.commitment is None else bytes(event.commitment).hex(),
    }


def leaf_bytes(event: AuditEvent) -> bytes:
    return rfc8785.dumps(body_of(event))


def leaf_of(event: AuditEvent) -> bytes:
    """The leaf hash of this event in the tree."""
    return leaf_hash(leaf_bytes(event))


def utc(instant: datetime) -> str:
    """`2026-11-21T19:30:00.123456Z`, always with microseconds."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class EventText(NamedTuple):
    """An event as texts formatted by PostgreSQL, selected with `COLUMNS`."""

    number: int
    id: str
    type: str
    at: str
    actor_kind: str
    actor: str
    role: str
    object_kind: str | None
    object: str | None
    subject: str | None
    shown: str
    outcome: str
    reason: str
    counters: str
    cause: str | None
    commitment: str | None


COLUMNS = """
event.number, event.id::text, event.type, to_char(event.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
event.actor_kind, event.actor_ref::text, event.role_ref::text, event.object_kind, event.object_ref::text,
event.subject_ref::text, event.shown::text, event.outcome, event.reason_code, event.counters::text, event.cause::text,
encode(event.commitment, 'hex')
"""
"""Columns of `audit_event AS event` in the order of `EventText`."""

WORDS = re.compile(r"[a-z0-9_. ]*")
IDS = re.compile(r"\{[0-9a-f-]{36}(?:,[0-9a-f-]{36})*\}")
COUNT = r'"[a-z0-9_]+": (?:0|-?[1-9][0-9]{0,14})'
COUNTERS = re.compile(rf"\{{{COUNT}(?:, {COUNT})*\}}")
LARGEST = 2**53 - 1
"""Numbers are doubles in canonical JSON."""


def leaf_of_written(event: EventText) -> bytes | None:
    """The same hash as `leaf_of` at a tenth of the cost; None for an event with values that the checks do not allow,
    for which `leaf_of` is needed.
    """
    written = bytes_of_written(event)
    return None if written is None else leaf_hash(written)


def bytes_of_written(event: EventText) -> bytes | None:
    """The same bytes as `leaf_bytes` if no value needs escaping or rounding; else None."""
    words = f"{event.type} {event.actor_kind} {event.object_kind or ''} {event.outcome} {event.reason}"
    if event.number > LARGEST or not WORDS.fullmatch(words):
        return None
    shown, counters = "[]", "{}"
    if event.shown != "{}":
        if not IDS.fullmatch(event.shown):
            return None
        shown = '["' + '","'.join(sorted(event.shown[1:-1].split(","))) + '"]'
    if event.counters != "{}":
        if not COUNTERS.fullmatch(event.counters):
            return None
        # A quote sorts before every character of a name: sorting with values equals sorting by name.
        counters = "{" + ",".join(sorted(event.counters[1:-1].replace(" ", "").split(","))) + "}"
    return (
        f'{{"actor":"{event.actor}","actor_kind":"{event.actor_kind}","at":"{event.at}","cause":{_quoted(event.cause)}'
        f',"commitment":{_quoted(event.commitment)},"counters":{counters},"id":"{event.id}","number":{event.number}'
        f',"object":{_quoted(event.object)},"object_kind":{_quoted(event.object_kind)},"outcome":"{event.outcome}"'
        f',"reason":"{event.reason}","role":"{event.role}","shown":{shown},"subject":{_quoted(event.subject)}'
        f',"type":"{event.type}","v":{VERSION}}}'
    ).encode("ascii")


def _quoted(word: str | None) -> str:
    return "null" if word is None else f'"{word}"'


def _text(ref: UUID | None) -> str | None:
    return None if ref is None else str(ref)
