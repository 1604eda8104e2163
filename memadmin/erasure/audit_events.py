"""Audit events of the data map."""

from __future__ import annotations

from memadmin.audit.log.types import declare

PROCESSING_RECORD = "erasure.processingrecord"

RECORD_CHANGED = declare(
    "processing_record.changed",
    "A person changed the head of the record of processing activities.",
    object=PROCESSING_RECORD,
)
