"""The events of the log itself, and those that belong to no feature."""

from __future__ import annotations

from memadmin.audit.log.reasons import EditReason
from memadmin.audit.log.types import ANY_OBJECT, declare

ACCESS_DENIED = declare(
    "access.denied",
    "Somebody signed in asked for a page, or for an object by its id, that is not theirs.",
    reasons=("forbidden", "not_found"),
)
KEY_ROTATED = declare(
    "key.rotated",
    "Checkpoints are signed with another key from here on.",
    reasons=("signed_in", "not_signed_in"),
)
EPOCH_BEGUN = declare(
    "log.epoch_begun",
    "The log goes on from an older state, after a restore; later events that were anchored outside are not in it.",
    counters=("epoch", "size", "lost_size"),
    reasons=("restored_backup", "moved", "test_of_restore"),
)
LOG_VIEWED = declare("log.viewed", "Somebody looked at a page of the audit log; the filter is in the details.")
LOG_SEARCHED = declare(
    "log.searched", "Somebody looked for the events about a person or a record.", counters=("found",)
)
LOG_EXPORTED = declare(
    "log.exported",
    "Somebody downloaded what a filter of the audit log shows, or all of it.",
    reasons=("jsonl", "csv", "whole", "consistency"),
)
LOG_VERIFICATION_REQUESTED = declare("log.verification_requested", "Somebody had the audit log verified.")
EVENT_VIEWED = declare(
    "event.viewed", "Somebody opened an event of the audit log, with its details.", object="audit.auditevent"
)
WHY_ERASED = ("subject_request", "not_needed", "mistake")
DETAILS_ERASED = declare(
    "details.erased",
    "The details of an event, and of the rows that it changed, were erased; further records are the events.",
    object="audit.auditevent",
    counters=("events",),
    reasons=WHY_ERASED,
)
NAME_ERASED = declare(
    "name.erased",
    "Who a person in the log was is erased, with the values before and after that tell of their account.",
    object="audit.auditactor",
    reasons=WHY_ERASED,
)
EVENT_PROOF_EXPORTED = declare(
    "event.proof_exported", "Somebody downloaded the proof of an event.", object="audit.auditevent"
)
RAW_EDIT_MADE = declare(
    "raw_edit.made",
    "Somebody changed rows in raw edits that no verb is about; the reason in words is in the details.",
    object=ANY_OBJECT,
    counters=("rows",),
    reasons=EditReason.values,
)
