"""Exports of filtered events: proofs as JSON Lines, or a table as CSV."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from memadmin.audit.log.label_registry import Names
from memadmin.audit.models import AuditAnchor, AuditCheckpoint, AuditEvent
from memadmin.audit.pages import listing
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.transparency import anchors, tree, tree_store
from memadmin.audit.transparency.canonical import body_of, leaf_of, utc
from memadmin.audit.transparency.notes import Checkpoint, Note
from memadmin.audit.transparency.proofs import FORMAT, EventProof
from memadmin.audit.transparency.tree import Span
from memadmin.web.downloads import csv_lines
from memadmin.web.paging import page_of_union

BATCH = 500
KEPT_SPANS = 512
"""Number of cached spans, of at most 256 hashes each: 4 MB."""

COLUMNS = (
    "index",
    "at (UTC)",
    "id",
    "event",
    "sentence",
    "actor kind",
    "actor",
    "actor id",
    "database role",
    "object kind",
    "object",
    "object id",
    "subject",
    "subject id",
    "further ids",
    "outcome",
    "reason",
    "counters",
    "part of",
    "request id",
    "job id",
)


def batches(filters: AuditFilter) -> Iterator[list[AuditEvent]]:
    """The events of a filter, newest first, in batches at the cost of a page each.

    Events written meanwhile are newer than the first batch and are not included.
    """
    branches = filters.branches()
    cursor, is_first = "", True
    while cursor or is_first:
        page = page_of_union(branches, cursor=cursor, size=BATCH, salt="audit-export")
        if page.rows:
            yield page.rows
        cursor, is_first = page.older, False


def as_json_lines(filters: AuditFilter) -> Iterator[str]:
    """Each event in the format of the stand-alone verifier, with its proof if a checkpoint covers it."""
    read = KeepingReader()
    for events in batches(filters):
        for line in proved(events, read):
            yield json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n"


def as_table(filters: AuditFilter) -> Iterator[str]:
    """CSV with the names that the viewer may see; without proofs."""
    return csv_lines(COLUMNS, chain.from_iterable(table_rows(events, filters.names) for events in batches(filters)))


def table_rows(events: Sequence[AuditEvent], names: Names) -> Iterator[Iterable[object]]:
    for row in listing.described(events, names):
        event = row.event
        yield (
            row.leaf_index,
            utc(event.at),
            event.id,
            event.type,
            row.sentence.text,
            event.actor_kind,
            row.who,
            event.actor_ref,
            row.role,
            event.object_kind,
            row.object.text if row.object else None,
            event.object_ref,
            row.subject.text if row.subject else None,
            event.subject_ref,
            " ".join(map(str, event.shown)),
            event.outcome,
            event.reason_code,
            ", ".join(row.counters),
            event.cause,
            event.request,
            event.job_id,
        )


def proved(events: Sequence[AuditEvent], read: KeepingReader) -> Iterator[dict[str, object]]:
    """The events as `EventProof.as_json`, without a proof if there is none yet. A few queries for all of them."""
    places = listing.leaf_indexes(events)
    checkpoints = newest_checkpoints()
    for event in events:
        index = places.get(event.number)
        found = next((each for each in checkpoints if index is not None and index < each.row.size), None)
        if index is None or found is None:
            yield {"format": FORMAT, "event": body_of(event), "index": index}
            continue
        yield EventProof(
            event=event,
            index=index,
            leaf=leaf_of(event),
            path=tree.inclusion_proof(index, found.row.size, read),
            checkpoint=found.checkpoint,
            note=found.row.note,
            signed_at=found.row.at,
            anchors=found.anchors,
        ).as_json()


@dataclass(frozen=True, slots=True)
class AnchoredCheckpoint:
    """A checkpoint with its anchors, if any."""

    row: AuditCheckpoint
    checkpoint: Checkpoint
    anchors: Sequence[AuditAnchor] = ()


def newest_checkpoints() -> list[AnchoredCheckpoint]:
    """The newest anchored checkpoint, then the newest of all, as far as they exist. Three queries."""
    checkpoints = []
    known = AuditAnchor.objects.filter(outcome=anchors.ANCHORED)
    size = known.order_by("-checkpoint_size").values_list("checkpoint_size", flat=True).first()
    for row in (
        AuditCheckpoint.objects.filter(size=size or 0).first(),
        AuditCheckpoint.objects.order_by("-size").first(),
    ):
        if row:
            its_anchors = list(known.filter(checkpoint_size=row.size).order_by("pk"))
            checkpoints.append(AnchoredCheckpoint(row, Checkpoint.parse(Note.parse(row.note).text), its_anchors))
    return checkpoints


class KeepingReader:
    """Reader of the stored tree with a cache: proofs of neighbouring events share most hashes, and stored hashes never
    change.
    """

    def __init__(self) -> None:
        self.kept: OrderedDict[Span, Sequence[bytes]] = OrderedDict()

    def __call__(self, spans: Sequence[Span]) -> list[Sequence[bytes]]:
        missing = [span for span in spans if span not in self.kept]
        self.kept.update(zip(missing, tree_store.read(missing) if missing else [], strict=True))
        found = []
        for span in spans:
            self.kept.move_to_end(span)
            found.append(self.kept[span])
        while len(self.kept) > KEPT_SPANS:
            self.kept.popitem(last=False)
        return found
