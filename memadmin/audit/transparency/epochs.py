"""Epochs: how the log continues after the database was restored from an older state.

Anchors then contain checkpoints larger than the log. If it simply grew, new events would take indexes of lost ones.
So events wait until an operator confirms the restore: a signed record begins a new epoch, contains the lost size and
root, and is anchored first.
"""

from __future__ import annotations

from django.db import connection, transaction

from memadmin.audit.audit_events import EPOCH_BEGUN
from memadmin.audit.log.recording import record
from memadmin.audit.models import AuditAnchor, AuditEvent, AuditPending
from memadmin.audit.transparency import anchors, checkpoints, tree_store, verified_tree
from memadmin.audit.transparency.anchors.base import Ahead
from memadmin.audit.transparency.canonical import leaf_of
from memadmin.audit.transparency.keys import NoSigningKey
from memadmin.audit.transparency.notes import Checkpoint

LOCK = 0x6D656D61
"""PostgreSQL advisory lock of the process that may append to the tree."""

NEWEST_TRIES = 20


class NothingRestored(Exception):
    """No anchor has a newer checkpoint than the database. The message is a sentence."""

    def __init__(self) -> None:
        super().__init__("No anchor has a newer checkpoint than the database. No epoch was begun.")


def awaited(before: Checkpoint | None) -> AuditAnchor | None:
    """An anchor result since the newest checkpoint that shows a restored older state; while it exists, events wait.

    One query on the last NEWEST_TRIES rows, in each turn of the sequencer.
    """
    tried = AuditAnchor.objects.order_by("-pk")[:NEWEST_TRIES]
    ahead = AuditAnchor.objects.filter(pk__in=tried.values("pk"), outcome=anchors.AHEAD)
    if before:
        ahead = ahead.filter(at__gt=before.at)
    return ahead.order_by("-pk").first()


def look_outside(*, is_quick: bool) -> None:
    """Records an anchor with a newer checkpoint than the database. Waits for the network unless `is_quick`."""
    own = checkpoints.latest()
    if awaited(own):
        return
    if found := anchors.newest_beyond(own, checkpoints.trusted_keys(own), is_quick=is_quick):
        place, known = found
        AuditAnchor.objects.create(
            checkpoint_size=known.size,
            sink=place.name,
            outcome=anchors.AHEAD,
            receipt=str(Ahead(place.name, known)),
        )


def begin_epoch(*, reason_code: str) -> Checkpoint:
    """Continues the log from the restored older state, and anchors the record of it at once.

    Reads all leaves, as no process has verified the restored ones. Raises NothingRestored, NoSigningKey, or
    `verified_tree.TreeRewritten`.
    """
    own = checkpoints.latest()
    found = anchors.newest_beyond(own, checkpoints.trusted_keys(own))
    if found is None:
        raise NothingRestored
    lost = found[1]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        restored = verified_tree.newest_of_ours()
        before = restored or lost
        key = checkpoints.signer(before)
        if key is None:
            raise NoSigningKey("The record of an epoch")
        tree = verified_tree.bring_up_to_date(None, restored).tree
        event_id = record(
            EPOCH_BEGUN,
            reason_code=reason_code,
            counters={"epoch": max(before.epoch, lost.epoch) + 1, "size": tree.size, "lost_size": lost.size},
        )
        # Before all queued events, so that the epoch begins with its own record.
        event = AuditEvent.objects.get(id=event_id)
        tree_store.write(tree, [(event.number, leaf_of(event))])
        AuditPending.objects.filter(number=event.number).delete()
        begun = checkpoints.write(tree, key, before, checkpoints.database_now(), replaced=lost)
    anchors.publish(at_once=True)
    return begun
