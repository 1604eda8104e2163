"""The sequencer: assigns committed events their indexes in the tree.

Events are numbered when they are inserted and become visible when their transaction commits, in another order. So
no number marks the end of all committed events: a trigger adds each event to `audit_pending`, and every visible row
there is taken, however low its number. The row is removed in the transaction that writes the leaf. A row without an
event, after an insert that was skipped by a conflict, is removed too: an event and its row become visible together.

Any number of processes may run this. The one with the lock works on one batch; the lock ends with the transaction, so
a killed sequencer leaves nothing behind.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import Error, connection, transaction

from memadmin.audit.audit_events import KEY_ROTATED
from memadmin.audit.log.actors import Actor, acting
from memadmin.audit.log.recording import record
from memadmin.audit.models import AuditAnchor, AuditPending
from memadmin.audit.transparency import checkpoints, epochs, tree_store, verified_tree
from memadmin.audit.transparency.canonical import EventText
from memadmin.audit.transparency.notes import Checkpoint
from memadmin.audit.transparency.verified_tree import TreeRewritten, VerifiedTree

MOST_EVENTS = 1000
POLL_SECONDS = 0.1
"""A turn takes about 3 ms of processor time, here and in the database, even without events."""
TICK_SECONDS = 1.0
"""Interval of checks whether a checkpoint is due while there are no events."""
PAUSE_SECONDS = 1.0
"""After a failure."""
LOOK_SECONDS = 60.0
"""Interval of checks for a newer checkpoint in an anchor on this machine."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """Result of one turn."""

    size: int
    """Size of the tree after the turn."""
    events: Sequence[EventText] = ()
    checkpoint: Checkpoint | None = None
    is_full: bool = False
    """Whether more events may be waiting."""


class OlderStateRestored(Exception):
    """The log is shorter than an anchored checkpoint. It must not continue over lost events without a record."""

    def __init__(self, anchor: AuditAnchor) -> None:
        super().__init__(anchor.receipt)


STOPS = (OlderStateRestored, TreeRewritten, tree_store.TreeDamaged)
"""Reasons why events wait until an operator has acted. Each message is a sentence."""


class Sequencer:
    """One process that may become the sequencer. Not shared between threads."""

    def __init__(self) -> None:
        self._looked_at: float | None = None
        self._said = ""
        self._verified: VerifiedTree | None = None

    def step(self, *, is_last: bool = False) -> Batch | None:
        """Takes up to 1,000 events; None when another process works. About ten queries.

        A checkpoint is written when one is due, and with `is_last` for anything that has none. The first turn reads all
        leaves to verify them: some seconds for a million events.

        Raises OlderStateRestored, TreeRewritten, and `tree_store.TreeDamaged` if hashes to append to are missing.
        """
        self._look_outside()
        try:
            return self._turn(is_last=is_last)
        except TreeRewritten as problem:
            verified_tree.note_stop(problem)
            raise

    def _turn(self, *, is_last: bool) -> Batch | None:
        with acting(Actor("job", "sequencer")), transaction.atomic():
            if not self._may_lead():
                return None
            before = verified_tree.newest_of_ours()
            if ahead := epochs.awaited(before):
                raise OlderStateRestored(ahead)
            verified = verified_tree.bring_up_to_date(self._verified, before)
            tree, last_leaf = verified.tree, verified.last_leaf
            key = checkpoints.signer(before)
            is_new_key = key is not None and checkpoints.is_new_key(key, before)
            if key and is_new_key:
                reason = "signed_in" if checkpoints.signs_in(key, before) else "not_signed_in"
                record(
                    KEY_ROTATED, reason_code=reason, details={"from": str(before and before.key), "to": str(key.public)}
                )
            numbers = self._pending(MOST_EVENTS)
            events = tree_store.written(numbers)
            if events:
                leaves = [(event.number, tree_store.leaf_of(event)) for event in events]
                tree_store.write(tree, leaves)
                last_leaf = leaves[-1][1]
            if numbers:
                self._take_from_queue(numbers)
            now = checkpoints.database_now()
            wants_checkpoint = is_new_key or checkpoints.is_due(tree.size, before, now)
            if is_last:
                wants_checkpoint |= tree.size > (before.size if before else 0)
            written = None
            if key and wants_checkpoint:
                verified_tree.check_stored(tree)
                written = checkpoints.write(tree, key, before, now)
        # Only after the commit: after a rollback the tree has not grown.
        self._verified = VerifiedTree(tree, last_leaf, written or before)
        return Batch(tree.size, events, written, is_full=len(numbers) >= MOST_EVENTS)

    def run(self, stop: threading.Event) -> None:
        """Works until `stop` is set, also through failures of the database."""
        ticked = 0.0
        try:
            while not stop.is_set():
                try:
                    is_time = time.monotonic() >= ticked + TICK_SECONDS
                    if not is_time and not self._pending(1):
                        stop.wait(POLL_SECONDS)
                        continue
                    batch = self.step()
                    ticked = time.monotonic()
                    if not (batch and batch.is_full):
                        stop.wait(POLL_SECONDS)
                except STOPS as problem:
                    # An operator has to act; the jobs in this process are not affected.
                    self._say_once(str(problem))
                    stop.wait(PAUSE_SECONDS)
                except Error as problem:
                    logger.warning("The sequencer failed and will try again: %s", problem)
                    connection.close()
                    stop.wait(PAUSE_SECONDS)
            self.finish()
        finally:
            connection.close()

    def finish(self) -> Batch | None:
        """Takes the remaining events and signs them, so that an idle log is covered to its end."""
        try:
            while (batch := self.step(is_last=True)) and batch.is_full:
                pass
        except (Error, *STOPS) as problem:
            logger.warning("The sequencer could not sign the last events: %s", problem)
            return None
        return batch

    def _look_outside(self) -> None:
        """Checks all anchors at the start, and local ones at intervals; the job that sends checkpoints to other
        machines checks those.
        """
        now = time.monotonic()
        if self._looked_at is None or now >= self._looked_at + LOOK_SECONDS:
            epochs.look_outside(is_quick=self._looked_at is not None)
            self._looked_at = now

    def _say_once(self, sentence: str) -> None:
        if sentence != self._said:
            logger.error(sentence)
            self._said = sentence

    def _may_lead(self) -> bool:
        # A separate statement: later reads must see what the last leader has written.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [epochs.LOCK])
            may: bool = cursor.fetchone()[0]
        return may

    def _pending(self, most: int) -> list[int]:
        """Numbers queued by committed transactions, in order, so that events of one transaction keep theirs."""
        return list(AuditPending.objects.order_by("number").values_list("number", flat=True)[:most])

    def _take_from_queue(self, numbers: list[int]) -> None:
        AuditPending.objects.filter(number__in=numbers).delete()


def oldest_unsequenced() -> timedelta | None:
    """Age of the first event without an index; None when all have one. One query, one row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp() - event.at FROM audit_pending JOIN audit_event AS event USING (number)"
            " ORDER BY number LIMIT 1"
        )
        found: tuple[timedelta] | None = cursor.fetchone()
    return found[0] if found else None
