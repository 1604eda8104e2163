"""Export of the whole log for the stand-alone verifier: JSON Lines, each an object.

The first line is `{"format": "memadmin-audit-log/1", "origin", "exported_at", "size", "details"}`, the last
`{"end": {"leaves"}}`; `details` states whether the file contains the details that exist. Between them, in any order
that keeps leaves in theirs:

- `{"index", "leaf", "number", "event", "details"?}`: an index with its hash, and the event in its hashed form, null
  if it is missing;
- `{"checkpoint": {"size", "root", "note"}}`;
- `{"waiting": {"is_pending", "seconds"}, "event", "details"?}`: an event without an index, whether it is queued, and
  for how many seconds it was observed without one;
- `{"anchored": {"sink", "size", "at", "receipt"}}`: the last anchor at a place according to the log itself. It proves
  nothing, but an anchor that ends before it was cut.

The verifier refuses any other line or key.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.utils.timezone import now

from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditDetail, AuditEvent, AuditLeaf, AuditPending
from memadmin.audit.transparency import anchors, tree_store
from memadmin.audit.transparency.canonical import body_of, utc
from memadmin.audit.transparency.notes import BadNote, Checkpoint, Note
from memadmin.audit.transparency.status import LONGEST_UNSEQUENCED
from memadmin.batching import batched

FORMAT = "memadmin-audit-log/1"
BATCH = 2000
POLL_SECONDS = 0.5


def as_json_lines(*, with_details: bool = False, only_signed: bool = False) -> Iterator[str]:
    """The whole log in one snapshot. Details may contain personal data and are left out unless requested.

    With `only_signed` it ends with the newest checkpoint. Constant memory; keeps a transaction open while it is read.
    Ends ten seconds later if an event has no index.
    """
    with one_moment():
        latest = AuditCheckpoint.objects.order_by("-size").first()
        size = tree_store.size()
        if only_signed:
            size = min(size, latest.size if latest else 0)
        yield _line(
            {
                "format": FORMAT,
                "origin": _origin(latest.note) if latest else "",
                "exported_at": utc(now()),
                "size": size,
                "details": with_details,
            }
        )
        checkpoints_left = AuditCheckpoint.objects.order_by("size").iterator(BATCH)
        checkpoint = next(checkpoints_left, None)
        leaves = 0
        for record in _leaf_records(size, with_details=with_details):
            while checkpoint and checkpoint.size <= record["index"]:
                yield _checkpoint(checkpoint)
                checkpoint = next(checkpoints_left, None)
            yield _line(record)
            leaves += 1
        while checkpoint:
            yield _checkpoint(checkpoint)
            checkpoint = next(checkpoints_left, None)
        yield from _anchor_lines()
        is_placed = Exists(AuditLeaf.objects.filter(event_number=OuterRef("number")))
        waiting = [] if only_signed else list(AuditEvent.objects.filter(~is_placed).order_by("number"))
        pending = set(AuditPending.objects.values_list("number", flat=True)) if waiting else set()
        details = _details(waiting) if with_details else {}
    watched = _watched([event.number for event in waiting if now() - event.at > LONGEST_UNSEQUENCED])
    for event in waiting:
        found = {"is_pending": event.number in pending, "seconds": watched.get(event.number, 0)}
        yield _line({"waiting": found, "event": body_of(event)} | details.get(event.id, {}))
    yield _line({"end": {"leaves": leaves}})


def _leaf_records(size: int, *, with_details: bool) -> Iterator[dict[str, Any]]:
    """The record of each index below `size`, in order."""
    leaves = AuditLeaf.objects.filter(index__lt=size).order_by("index", "event_number")
    for batch in batched(leaves.iterator(BATCH), BATCH):
        events = AuditEvent.objects.in_bulk([leaf.event_number for leaf in batch])
        details = _details(events.values()) if with_details else {}
        for leaf in batch:
            event = events.get(leaf.event_number)
            record: dict[str, Any] = {
                "index": leaf.index,
                "leaf": bytes(leaf.hash).hex(),
                "number": leaf.event_number,
                "event": body_of(event) if event else None,
            }
            yield record | (details.get(event.id, {}) if event else {})


def _anchor_lines() -> Iterator[str]:
    """A line for the last anchor at each place."""
    for place in anchors.configured():
        last = AuditAnchor.objects.filter(sink=place.name, outcome=anchors.ANCHORED).order_by("-pk").first()
        if last:
            anchored = {
                "sink": last.sink,
                "size": last.checkpoint_size,
                "at": utc(last.at),
                "receipt": last.receipt,
            }
            yield _line({"anchored": anchored})


@contextmanager
def one_moment() -> Iterator[None]:
    """All queries of the block see the same state; inside of a transaction, its own."""
    is_ours = not connection.in_atomic_block
    with transaction.atomic():
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _watched(numbers: list[int]) -> dict[int, float]:
    """Seconds for which events got no index. An old event may have been committed just now and gets one at once."""
    began = time.monotonic()
    still = set(numbers)
    while still and time.monotonic() - began <= LONGEST_UNSEQUENCED.total_seconds():
        time.sleep(POLL_SECONDS)
        still -= set(AuditLeaf.objects.filter(event_number__in=still).values_list("event_number", flat=True))
    return dict.fromkeys(still, round(time.monotonic() - began, 1))


def _details(events: Iterable[AuditEvent]) -> dict[Any, dict[str, Any]]:
    committed = [event for event in events if event.commitment is not None]
    return {
        detail.pk: {"details": {"salt": bytes(detail.salt).hex(), "text": detail.details}}
        for detail in AuditDetail.objects.filter(event__in=committed)
    }


def _origin(note: str) -> str:
    """The name of the log; empty if the note is damaged, which the verifier reports."""
    try:
        return Checkpoint.parse(Note.parse(note).text).origin
    except BadNote:
        return ""


def _checkpoint(row: AuditCheckpoint) -> str:
    return _line({"checkpoint": {"size": row.size, "root": bytes(row.root).hex(), "note": row.note}})


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
