"""The preview of a batch: totals by place, counted by the steps of the erasure, some lines in each chunk."""

from __future__ import annotations

from typing import Any

from django.db.models.functions import Now
from django.utils.timezone import now

from memadmin import audit
from memadmin.erasure.batches import audit_events
from memadmin.erasure.batches.approving import digest_of_lines
from memadmin.erasure.extents import extents_of
from memadmin.erasure.models import BatchLine, RequestBatch
from memadmin.erasure.preview import holders
from memadmin.erasure.scope import SubjectScope, scope_of
from memadmin.runs.engine import Lease

LINES_AT_ONCE = 20

OURS = ""
"""Place of what memadmin holds itself."""


def work(lease: Lease) -> None:
    """Counts from the cursor on. Raises what the lease raises."""
    batches = RequestBatch.objects.open().filter(preview_run=lease.run)
    batch = batches.first()
    lines = BatchLine.objects.filter(batch=batch, problem="").select_related("subject").order_by("number")
    while True:
        if batch is None or not batches.exists():  # another count took its place, or the batch is closed
            return
        cursor: dict[str, Any] = lease.run.cursor or {
            **{"line": 0, "places": {}, "problems": {}},
            "at": note_extents(lease, batch),
        }
        some = list(lines.filter(number__gt=cursor["line"])[:LINES_AT_ONCE])
        if not some:
            break
        for line in some:
            assert line.subject is not None, "an accepted line has its subject"
            add(cursor, scope_of(line.subject))
            lease.keep()
        with lease.chunk() as run:
            run.cursor = {**cursor, "line": some[-1].number}
            run.done += len(some)
        lease.checkpoint()
    covers = digest_of_lines(dict(lines.values_list("number", "extent")))
    preview = {"places": cursor["places"], "problems": cursor["problems"], "at": cursor["at"], "covers": covers}
    totals = {
        "subjects": lease.run.done,
        "rows": sum(counted[1] for counted in cursor["places"].values()),
        "held": sum(counted[2] for counted in cursor["places"].values()),
    }
    with lease.chunk() as run:
        audit.record(audit_events.BATCH_PREVIEWED, by=run.requester(), target=batch, counters=totals)
        RequestBatch.objects.filter(pk=batch.pk, preview_run=run).update(preview=preview, previewed_at=Now())


def note_extents(lease: Lease, batch: RequestBatch) -> str:
    """The moment as of which each line is counted; what it covers then is noted with it, for the approval."""
    at = now()
    with lease.chunk() as run:
        # Not in place of those of another count.
        if RequestBatch.objects.select_for_update(no_key=True).filter(pk=batch.pk, preview_run=run):
            some = list(BatchLine.objects.filter(batch=batch, problem="").only("pk", "subject_id"))
            found = extents_of([line.subject_id for line in some if line.subject_id], at)
            for line in some:
                line.extent = found[line.subject_id] if line.subject_id else ""
            BatchLine.objects.bulk_update(some, ["extent"], batch_size=1_000)
    return at.isoformat()


def add(cursor: dict[str, Any], scope: SubjectScope) -> None:
    """Adds sessions, rows and held rows of one subject to the places. A store that did not respond is not asked again:
    each of thousands of subjects would wait for it.
    """
    for holder in holders(scope, without=cursor["problems"]):
        counted = holder.counted
        if counted.problem:
            cursor["problems"][holder.place] = counted.problem
            cursor["places"].pop(holder.place, None)
            continue
        totals = cursor["places"].setdefault(holder.place, [0, 0, 0])
        for index, number in enumerate((counted.details.get("sessions", 0), counted.rows, counted.held)):
            totals[index] += number
