"""Audit events of batches."""

from __future__ import annotations

from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.types import declare
from memadmin.erasure.models import SubjectRequest

assign(EventGroup.ERASURE, "batch")

BATCH = "erasure.requestbatch"

BATCH_UPLOADED = declare(
    "batch.uploaded",
    "A file with erasures was uploaded as a batch.",
    sentence="{actor} uploaded {object}[ with {lines}]",
    object=BATCH,
    reasons=SubjectRequest.Ground,
    counters=("lines", "accepted"),
)
BATCH_LINE_CORRECTED = declare(
    "batch.line_corrected",
    "A person corrected a line of a batch.",
    sentence="{actor} corrected a line of {object}",
    object=BATCH,
    counters=("line",),
)
BATCH_PREVIEWED = declare(
    "batch.previewed",
    "What a batch would erase was counted.",
    sentence="{actor} counted what {object} would erase[: {rows} of {subjects}]",
    object=BATCH,
    counters=("subjects", "rows", "held"),
)
BATCH_APPROVED = declare(
    "batch.approved",
    "A second person approved all erasures of a batch.",
    sentence="{actor} approved {object}[ with {subjects}]",
    object=BATCH,
    counters=("subjects",),
)
BATCH_EXTENDED = declare(
    "batch.extended",
    "The time of a batch, and of its open cases, was extended.",
    sentence="{actor} extended the time of {object}[ with {subjects}]",
    object=BATCH,
    counters=("subjects",),
)
BATCH_REMINDED = declare(
    "batch.reminded",
    "A reminder of a batch's due date was sent.",
    sentence="A reminder of {object} was sent",
    object=BATCH,
    counters=("percent",),
)
BATCH_CANCELLED = declare(
    "batch.cancelled",
    "A batch was cancelled before anything was erased.",
    sentence="{actor} cancelled {object}",
    object=BATCH,
)
BATCH_STARTED = declare(
    "batch.started", "A batch began to open its cases.", sentence="{actor} started {object}", object=BATCH
)
BATCH_RETRIED = declare(
    "batch.retried",
    "A person repeated the failed erasures of a batch.",
    sentence="{actor} repeated the failed erasures of {object}",
    object=BATCH,
    counters=("subjects",),
)
BATCH_CLOSED = declare(
    "batch.closed",
    "Every case of a batch is closed.",
    sentence="{actor} closed {object}[ with {subjects}]",
    object=BATCH,
    counters=("subjects", "complete"),
)
BATCH_OUTCOME_DOWNLOADED = declare(
    "batch.outcome_downloaded",
    "A person downloaded the outcome or the broken lines of a batch.",
    sentence="{actor} downloaded the outcome of {object}",
    object=BATCH,
)
