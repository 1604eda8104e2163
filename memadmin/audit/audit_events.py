"""Audit events of the log itself, and general ones such as denied access."""

from __future__ import annotations

from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.reasons import EditReason
from memadmin.audit.log.types import ANY_OBJECT, declare

assign(EventGroup.LOG, "log", "event", "key", "details", "name", "actor")
assign(EventGroup.RIGHTS, "access.denied")
assign(EventGroup.SETTINGS, "raw_edit")

ACCESS_DENIED = declare(
    "access.denied",
    "A signed-in person requested a page or an object without having access to it.",
    sentence="{actor} was denied a page or an object",
    reasons=("forbidden", "not_found"),
)
KEY_ROTATED = declare(
    "key.rotated",
    "The signing key changed: later checkpoints are signed with the new key.",
    sentence="The key that signs the log was changed by {actor}",
    reasons=("signed_in", "not_signed_in"),
)
EPOCH_BEGUN = declare(
    "log.epoch_begun",
    "After a restore, the log continues from an older state; later events that were anchored externally are lost.",
    sentence="{actor} continued the log from an older state[, with {size}]",
    counters=("epoch", "size", "lost_size"),
    reasons=("restored_backup", "moved", "test_of_restore"),
)
LOG_VIEWED = declare(
    "log.viewed",
    "A person viewed a page of the audit log; the filter is in the details.",
    sentence="{actor} viewed the audit log[ about {subject}]",
)
LOG_SEARCHED = declare(
    "log.searched",
    "A person searched for the events about a person or a record.",
    sentence="{actor} searched the audit log[ and found {found}]",
    counters=("found",),
)
LOG_EXPORTED = declare(
    "log.exported",
    "A person downloaded the audit log, filtered or whole.",
    sentence="{actor} downloaded the audit log[ about {subject}]",
    reasons=("jsonl", "csv", "whole", "consistency"),
)
LOG_VERIFICATION_REQUESTED = declare(
    "log.verification_requested",
    "A person requested a verification of the audit log.",
    sentence="{actor} requested a verification of the audit log",
)
EVENT_VIEWED = declare(
    "event.viewed",
    "A person opened an event of the audit log, with its details.",
    sentence="{actor} opened {object}",
    object="audit.auditevent",
)
WHY_ERASED = ("subject_request", "not_needed", "mistake")
DETAILS_ERASED = declare(
    "details.erased",
    "The details of an event and of its row changes were erased; the further records are the erased events.",
    sentence="{actor} erased the details of {object}[ and its rows: {events}]",
    object="audit.auditevent",
    counters=("events",),
    reasons=WHY_ERASED,
)
NAME_ERASED = declare(
    "name.erased",
    "The name of a person in the log was erased, with the recorded values of their account.",
    sentence="{actor} erased a name in the log: {object}",
    object="audit.auditactor",
    reasons=WHY_ERASED,
)
OLDER_NAME = "older_name"
"""Reason of a name that was recorded before events committed to names."""
ACTOR_NAMED = declare(
    "actor.named",
    "The name of a person was recorded beside the log, or changed there; this event commits to it.",
    sentence="{actor} recorded the name of {object}",
    object="audit.auditactor",
    reasons=(OLDER_NAME,),
)
ACTOR_FORGOTTEN = declare(
    "actor.forgotten",
    "The name of a person in the log was erased, because their account was deleted.",
    sentence="{actor} erased the name of {object} with the account",
    object="audit.auditactor",
)
EVENT_PROOF_EXPORTED = declare(
    "event.proof_exported",
    "A person downloaded the proof of an event.",
    sentence="{actor} downloaded the proof of {object}",
    object="audit.auditevent",
)
RAW_EDIT_MADE = declare(
    "raw_edit.made",
    "A person changed rows in raw edits that have no event type of their own; the explanation is in the details.",
    sentence="{actor} changed {rows} in raw edits[: {object}]",
    object=ANY_OBJECT,
    counters=("rows",),
    reasons=EditReason,
)
