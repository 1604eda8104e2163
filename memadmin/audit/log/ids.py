"""Ids in events for records without a random id of their own."""

from __future__ import annotations

import hashlib
import os
import time
import uuid

from django.db.models import Model


def ref(kind: str, pk: object) -> uuid.UUID:
    """The id of a row whose key is not a UUID: deterministic, and equal to SQL's `memadmin_ref`.

    A UUID of version 8 from SHA-256: PostgreSQL has no SHA-1, which version 5 would need, without an extension.
    """
    digest = bytearray(hashlib.sha256(f"{kind}:{pk}".encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80
    digest[8] = digest[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(digest))


def uuid7() -> uuid.UUID:
    """A new id that begins with the time, so that events of one day are adjacent in an index."""
    value = bytearray(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    return uuid.UUID(bytes=bytes(value))


def kind_of(row: Model) -> str:
    """The object kind of a row in events: `sessions_app.sessionrecord`."""
    concrete = row._meta.concrete_model
    assert concrete is not None, "only an abstract model has none, and no rows either"
    return concrete._meta.label_lower


def ref_of(row: Model) -> uuid.UUID:
    # Events are identified by their id; their primary key is internal to the database.
    own = row.pk if isinstance(row.pk, uuid.UUID) else getattr(row, "id", None)
    return own if isinstance(own, uuid.UUID) else ref(kind_of(row), row.pk)
