"""Checkpoints: signed statements of the tree's root, written by the process with the sequencer's lock."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from functools import lru_cache

from django.conf import settings
from django.db import connection

from memadmin.audit.models import AuditCheckpoint
from memadmin.audit.transparency import keys, notes
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note, PublicKey, SigningKey
from memadmin.audit.transparency.tree import Frontier

MOST_EVENTS = 1000
LONGEST = timedelta(minutes=1)
"""Limits of the time and the number of events before the next checkpoint."""


def latest_note() -> str | None:
    """The note of the newest checkpoint, not verified. One query."""
    return AuditCheckpoint.objects.order_by("-size").values_list("note", flat=True).first()


def latest() -> Checkpoint | None:
    """The newest checkpoint for display, its signature not verified; None also for an unreadable note. One query."""
    note = latest_note()
    try:
        return None if note is None else _said_by(note)
    except BadNote:
        # The sequencer stops over it, and stores why.
        return None


def signed_by_us(note: str) -> Checkpoint:
    """The checkpoint of a note that a key of this installation has signed: the current, the previous or a trusted one.

    Without a key of its own, a process only reads the note. Raises BadNote.
    """
    checkpoint = _said_by(note)
    current, previous = keys.signing_key(checkpoint.origin), keys.signing_key_before(checkpoint.origin)
    if current is None:
        return checkpoint
    known = [current.public, *([previous.public] if previous else []), *map(PublicKey.parse, settings.TRUSTED_KEYS)]
    return notes.verified(note, known)


@lru_cache(maxsize=2)
def _said_by(note: str) -> Checkpoint:
    return Checkpoint.parse(Note.parse(note).text)


def covering(size: int) -> AuditCheckpoint | None:
    """The smallest checkpoint of at least this size. One query."""
    return AuditCheckpoint.objects.filter(size__gte=size).order_by("size").first()


def is_due(size: int, before: Checkpoint | None, now: datetime) -> bool:
    """Whether a tree of this size needs a checkpoint by now."""
    if before is None:
        return size > 0
    return size >= before.size + MOST_EVENTS or (size > before.size and now >= before.at + LONGEST)


def signer(before: Checkpoint | None) -> SigningKey | None:
    """The current key, under the name of this log: the origin of its first checkpoint."""
    return keys.signing_key(before.origin if before else f"memadmin/{uuid.uuid4().hex}")


def trusted_keys(before: Checkpoint | None) -> list[PublicKey]:
    """Keys of this installation."""
    if before:
        found = [keys.signing_key(before.origin), keys.signing_key_before(before.origin)]
        return [before.key, *(key.public for key in found if key)]
    # A log without checkpoints has no name yet; a key is the same under every name.
    key = keys.signing_key("memadmin")
    return [key.public] if key else []


def is_new_key(key: SigningKey, before: Checkpoint | None) -> bool:
    return before is not None and before.key.key != key.public.key


def signs_in(key: SigningKey, before: Checkpoint | None) -> SigningKey | None:
    """The previous key, if it is still set and really preceded `key`."""
    former = keys.signing_key_before(key.name)
    if before and former and is_new_key(key, before) and former.public.key == before.key.key:
        return former
    return None


def write(
    tree: Frontier,
    key: SigningKey,
    before: Checkpoint | None,
    now: datetime,
    *,
    replaced: Checkpoint | None = None,
) -> Checkpoint:
    """Signs the current root of the tree and inserts the checkpoint. One query.

    With `replaced`, the newest checkpoint known before the database was restored, a new epoch begins.
    """
    epoch = before.epoch if before else 1
    checkpoint = Checkpoint(
        origin=key.name,
        size=tree.size,
        root=tree.root(),
        at=now,
        key=key.public,
        epoch=max(epoch, replaced.epoch) + 1 if replaced else epoch,
        replaced=(replaced.size, replaced.root) if replaced else None,
    )
    former = signs_in(key, before)
    note = notes.sign(checkpoint, key, *([former] if former else []))
    AuditCheckpoint.objects.create(
        size=checkpoint.size, root=checkpoint.root, at=now, key_id=checkpoint.key.id, note=note
    )
    return checkpoint


def database_now() -> datetime:
    """The time of the clock that stamps the events; it advances within a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
