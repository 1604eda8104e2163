"""The bytes of an event that its leaf is the hash of: canonical JSON (RFC 8785), so that every program gets the same.

A version that was ever written stays readable for ever: a change of the shape is a new version beside this one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import rfc8785

from memadmin.audit.models import AuditEvent
from memadmin.audit.tree import leaf_hash

VERSION = 1


def body_of(event: AuditEvent) -> dict[str, Any]:
    """What the leaf says of an event; also how exports and proofs show it. What is absent is null."""
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
    """The hash that stands for this event in the tree."""
    return leaf_hash(leaf_bytes(event))


def utc(instant: datetime) -> str:
    """`2026-11-21T19:30:00.123456Z`, always with microseconds."""
    return instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _text(ref: UUID | None) -> str | None:
    return None if ref is None else str(ref)
