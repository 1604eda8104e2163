"""What happens after a database was restored from an older state.

Places outside know the log at a size that it has no longer. If it grew on, other events would stand where known ones
stood. So events wait, and whoever restored it says so: a signed record begins a new epoch, names the size and the root
that are lost, and is the first thing that is anchored of it.
"""

from __future__ import annotations

from django.db import connection, transaction

from memadmin.audit.audit_events import EPOCH_BEGUN
from memadmin.audit.log.recording import record
from memadmin.audit.models import AuditAnchor, AuditEvent, AuditPending
from memadmin.audit.transparency import anchors, checkpoints, tree_store
from memadmin.audit.transparency.anchors.base import Ahead
from memadmin.audit.transparency.canonical import leaf_of
from memadmin.audit.transparency.notes import Checkpoint

LOCK = 0x6D656D61
"""Of PostgreSQL's advisory locks: whoever holds it may add to the tree."""

NEWEST_TRIES = 20


class NothingRestored(Exception):
    """No place knows more of the log than we do. The message is a sentence."""

    def __init__(self) -> None:
        super().__init__("No anchor knows more of the log than the database does: no epoch begins.")


class NoSigningKey(Exception):
    def __init__(self) -> None:
        super().__init__("The record of an epoch has to be signed: set MEMADMIN_SIGNING_KEY.")


def awaited(before: Checkpoint | None) -> AuditAnchor | None:
    """What told that an older state was restored, since the newest checkpoint; while there is any, events wait.

    One query, of the last NEWEST_TRIES rows: each turn of the sequencer asks.
    """
    tried = AuditAnchor.objects.order_by("-pk")[:NEWEST_TRIES]
    ahead = AuditAnchor.objects.filter(pk__in=tried.values("pk"), outcome=anchors.AHEAD)
    if before:
        ahead = ahead.filter(at__gt=before.at)
    return ahead.order_by("-pk").first()


def look_outside(*, is_quick: bool) -> None:
    """Notes down a place that knows more of the log than we do. Waits for the network unless `is_quick`."""
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
    """Lets the log go on from the older state that was restored, and says so outside at once.

    Raises NothingRestored or NoSigningKey.
    """
    own = checkpoints.latest()
    found = anchors.newest_beyond(own, checkpoints.trusted_keys(own))
    if found is None:
        raise NothingRestored
    lost = found[1]
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK])
        before = checkpoints.latest() or lost
        key = checkpoints.signer(before)
        if key is None:
            raise NoSigningKey
        tree = tree_store.edge().tree
        event_id = record(
            EPOCH_BEGUN,
            reason_code=reason_code,
            counters={"epoch": max(before.epoch, lost.epoch) + 1, "size": tree.size, "lost_size": lost.size},
        )
        # Before all that waits, so that the epoch begins with its own record.
        event = AuditEvent.objects.get(id=event_id)
        tree_store.write(tree, [(event.number, leaf_of(event))])
        AuditPending.objects.filter(number=event.number).delete()
        begun = checkpoints.write(tree, key, before, checkpoints.database_now(), replaced=lost)
    anchors.publish(at_once=True)
    return begun
