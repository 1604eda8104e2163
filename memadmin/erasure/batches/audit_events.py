"""Audit events of batches."""

from __future__ import annotations

from memadmin.audit.log.types import declare
from memadmin.erasure.models import SubjectRequest

BATCH = "erasure.requestbatch"

BATCH_UPLOADED = declare(
    "batch.uploaded",
    "A file with erasures was uploaded as a batch.",
    object=BATCH,
    reasons=SubjectRequest.Ground.values,
    counters=("lines", "accepted"),
)
BATCH_LINE_CORRECTED = declare(
    "batch.line_corrected", "A person corrected a line of a batch.", object=BATCH, counters=("line",)
)
BATCH_PREVIEWED = declare(
    "batch.previewed", "What a batch would erase was counted.", object=BATCH, counters=("subjects", "rows", "held")
)
BATCH_APPROVAL_REQUESTED = declare(
    "batch.approval_requested", "A person asked for approval of a batch.", object=BATCH, counters=("subjects",)
)
BATCH_APPROVED = declare(
    "batch.approved", "A second person approved all erasures of a batch.", object=BATCH, counters=("subjects",)
)
BATCH_APPROVAL_DENIED = declare(
    "batch.approval_denied", "A person tried to approve a batch that they had requested.", object=BATCH
)
BATCH_SENT_BACK = declare("batch.sent_back", "A batch was sent back instead of approved.", object=BATCH)
BATCH_CANCELLED = declare("batch.cancelled", "A batch was cancelled before anything was erased.", object=BATCH)
BATCH_STARTED = declare("batch.started", "A batch began to open its cases.", object=BATCH)
BATCH_RETRIED = declare(
    "batch.retried", "A person repeated the failed erasures of a batch.", object=BATCH, counters=("subjects",)
)
BATCH_CLOSED = declare(
    "batch.closed", "Every case of a batch is closed.", object=BATCH, counters=("subjects", "complete")
)
BATCH_OUTCOME_DOWNLOADED = declare(
    "batch.outcome_downloaded", "A person downloaded the outcome or the broken lines of a batch.", object=BATCH
)
