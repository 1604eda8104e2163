"""Gives committed events their places in the tree.

Events are numbered when they are inserted and become visible when their transaction commits, in another order. So
there is no number up to which everything is known: a trigger notes each event in `audit_pending`, and whatever is
visible there is taken, however low its number. The note is removed in the transaction that writes the leaf. A note
without an event, of an insert that gave way to another, is removed too: an event is seen with its note or never.

Any number of processes may run this. Whoever gets the lock works, for one batch; it is given back by the end of the
transaction, however that comes, so a killed sequencer leaves nothing behind.
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
from memadmin.audit.transparency import checkpoints, epochs, tree_store
from memadmin.audit.transparency.canonical import EventText
from memadmin.audit.transparency.notes import Checkpoint

MOST_EVENTS = 1000
POLL_SECONDS = 0.1
"""A turn takes about 3 ms of processor time, here and in the database, whatever it finds."""
TICK_SECONDS = 1.0
"""How often it is looked whether a checkpoint is due while nothing happens."""
PAUSE_SECONDS = 1.0
"""After a failure."""
LOOK_SECONDS = 60.0
"""How often it is looked whether some place on this machine knows more of the log than we do."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one turn did."""

    size: int
    """Of the tree, after it."""
    events: Sequence[EventText] = ()
    checkpoint: Checkpoint | None = None
    is_full: bool = False
    """More may wait."""


class OlderStateRestored(Exception):
    """The log is shorter than it was known outside. It must not grow over what is lost as if nothing had happened."""

    def __init__(self, anchor: AuditAnchor) -> None:
        super().__init__(anchor.receipt)


class Sequencer:
    """One candidate. Not shared between threads."""

    def __init__(self) -> None:
        self._looked_at: float | None = None
        self._said = ""
        self._edge: tree_store.Edge | None = None

    def step(self, *, is_last: bool = False) -> Batch | None:
        """Takes up to 1,000 events; None when another candidate is at work. About ten queries.

        A checkpoint is written when one is due, and with `is_last` for anything that has none.

        Raises OlderStateRestored, and `stored.TreeDamaged` where hashes are missing to append to.
        """
        self._look_outside()
        with acting(Actor("job", "sequencer")), transaction.atomic():
            if not self._may_lead():
                return None
            before = checkpoints.latest()
            if ahead := epochs.awaited(before):
                raise OlderStateRestored(ahead)
            key = checkpoints.signer(before)
            is_new_key = key is not None and checkpoints.is_new_key(key, before)
            if key and is_new_key:
                reason = "signed_in" if checkpoints.signs_in(key, before) else "not_signed_in"
                record(
                    KEY_ROTATED, reason_code=reason, details={"from": str(before and before.key), "to": str(key.public)}
                )
            numbers = self._pending(MOST_EVENTS)
            events = tree_store.written(numbers)
            edge = tree_store.edge(self._edge)
            tree = edge.tree
            if events:
                leaves = [(event.number, tree_store.leaf_of(event)) for event in events]
                tree_store.write(tree, leaves)
                edge = tree_store.Edge(tree, leaves[-1][1])
            if numbers:
                self._take_from_queue(numbers)
            now = checkpoints.database_now()
            wants_checkpoint = is_new_key or checkpoints.is_due(tree.size, before, now)
            if is_last:
                wants_checkpoint |= tree.size > (before.size if before else 0)
            written = checkpoints.write(tree, key, before, now) if key and wants_checkpoint else None
        # Not before the commit: what was rolled back has not grown.
        self._edge = edge
        return Batch(tree.size, events, written, is_full=len(numbers) >= MOST_EVENTS)

    def run(self, stop: threading.Event) -> None:
        """Works until it is told to stop, whatever happens to the database meanwhile."""
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
                except (OlderStateRestored, tree_store.TreeDamaged) as problem:
                    # Somebody has to look; the jobs beside us have nothing to do with it.
                    self._say_once(str(problem))
                    stop.wait(PAUSE_SECONDS)
                except Error as problem:
                    logger.warning("The sequencer could not work, and tries again: %s", problem)
                    connection.close()
                    stop.wait(PAUSE_SECONDS)
            self.finish()
        finally:
            connection.close()

    def finish(self) -> Batch | None:
        """Takes what is left and signs it, so that a log that rests is covered to its end."""
        try:
            while (batch := self.step(is_last=True)) and batch.is_full:
                pass
        except (Error, OlderStateRestored, tree_store.TreeDamaged) as problem:
            logger.warning("The sequencer could not finish: %s", problem)
            return None
        return batch

    def _look_outside(self) -> None:
        """Everywhere when it begins, and from time to time where no network is in between; the job that brings
        checkpoints to other machines notices it there.
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
        # In a statement of its own: what is read after it must be what the last leader has written.
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [epochs.LOCK])
            may: bool = cursor.fetchone()[0]
        return may

    def _pending(self, most: int) -> list[int]:
        """What committed transactions have put into the queue, in its order, so that events of one keep theirs."""
        return list(AuditPending.objects.order_by("number").values_list("number", flat=True)[:most])

    def _take_from_queue(self, numbers: list[int]) -> None:
        AuditPending.objects.filter(number__in=numbers).delete()


def oldest_unsequenced() -> timedelta | None:
    """How long ago the first event was inserted that has no place yet; None when all have one. One query, one row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT clock_timestamp() - event.at FROM audit_pending JOIN audit_event AS event USING (number)"
            " ORDER BY number LIMIT 1"
        )
        found: tuple[timedelta] | None = cursor.fetchone()
    return found[0] if found else None
