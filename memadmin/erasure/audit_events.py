"""Audit events of requests of people about their data, and of the data map."""

from __future__ import annotations

from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.types import declare
from memadmin.erasure.models import SubjectRequest

assign(EventGroup.ERASURE, "request", "access", "processing_record")

REQUEST = "erasure.subjectrequest"
PROCESSING_RECORD = "erasure.processingrecord"

REQUEST_OPENED = declare(
    "request.opened",
    "A person's request was opened.",
    sentence="{actor} opened {object}",
    object=REQUEST,
    reasons=SubjectRequest.Kind,
)
REQUEST_JOINED = declare(
    "request.joined",
    "A request was received again; it joined the open one.",
    sentence="{actor} received {object} again",
    object=REQUEST,
)
IDENTITY_CHECKED = declare(
    "request.identity_checked",
    "The identity behind a request was checked.",
    sentence="{actor} checked the identity for {object}",
    object=REQUEST,
)
REQUEST_PREVIEWED = declare(
    "request.previewed",
    "What an erasure would erase was counted.",
    sentence="{actor} counted what {object} would erase[: {rows}]",
    object=REQUEST,
    counters=("rows", "held"),
)
REQUEST_APPROVED = declare(
    "request.approved", "A second person approved an erasure.", sentence="{actor} approved {object}", object=REQUEST
)
REQUEST_CANCELLED = declare(
    "request.cancelled",
    "A request was cancelled before anything was erased.",
    sentence="{actor} cancelled {object}",
    object=REQUEST,
)
REQUEST_REFUSED = declare(
    "request.refused",
    "A request was refused.",
    sentence="{actor} refused {object}",
    object=REQUEST,
    reasons=SubjectRequest.Refusal,
)
REQUEST_EXTENDED = declare(
    "request.extended",
    "The time to answer a request was extended.",
    sentence="{actor} extended the time to answer {object}",
    object=REQUEST,
)
REQUEST_COMMENTED = declare(
    "request.commented",
    "A person added a comment to a request.",
    sentence="{actor} commented on {object}",
    object=REQUEST,
)
REQUEST_REMINDED = declare(
    "request.reminded",
    "A reminder of a request's due date was sent.",
    sentence="A reminder of {object} was sent",
    object=REQUEST,
    counters=("percent",),
)
ERASURE_STARTED = declare(
    "request.started",
    "An erasure began: from now on nothing is stored about the subject.",
    sentence="{actor} started the erasure of {object}",
    object=REQUEST,
)
ROWS_ERASED = declare(
    "request.rows_erased",
    "One chunk of an erasure; the further records are its sessions.",
    sentence="{actor} erased {rows} for {object}",
    object=REQUEST,
    counters=("rows", "held"),
)
STEP_LEFT_OUT = declare(
    "request.step_left_out",
    "A person decided that an erasure ends without one of its steps.",
    sentence="{actor} left out a step of {object}",
    object=REQUEST,
)
ERASURE_SCANNED = declare(
    "request.scanned",
    "All places were searched for a person's ids.",
    sentence="{actor} searched {rows} for what {object} should have erased[: {found}]",
    object=REQUEST,
    counters=("rows", "found"),
)
REQUEST_CLOSED = declare(
    "request.closed",
    "A request was answered. The further record is the id of its receipt.",
    sentence="{actor} closed {object}",
    object=REQUEST,
    counters=("rows", "held", "exceptions"),
)
REQUEST_REOPENED = declare(
    "request.reopened",
    "A scan found data of an erased person: the case was opened again.",
    sentence="{actor} opened {object} again, because a scan found data",
    object=REQUEST,
)
RECEIPT_DOWNLOADED = declare(
    "request.receipt_downloaded",
    "A person downloaded a receipt.",
    sentence="{actor} downloaded the receipt of {object}",
    object=REQUEST,
)

RECORD_CHANGED = declare(
    "processing_record.changed",
    "A person changed the head of the record of processing activities.",
    sentence="{actor} changed the {object}",
    object=PROCESSING_RECORD,
)

# --- copies for the person --------------------------------------------------------------------------------------------

COPY_REQUESTED = declare(
    "access.copy_requested",
    "A person started to build a copy of a subject's data for the subject.",
    sentence="{actor} started to build the copy of data for {object}",
    object=REQUEST,
)
COPY_BUILT = declare(
    "access.copy_built",
    "A copy of a subject's data was built: all its sessions were read, encrypted ones decrypted.",
    sentence="{actor} built the copy of data for {object}[ from {sessions}]",
    object=REQUEST,
    counters=("sessions", "items"),
)
COPY_STORE_LEFT_OUT = declare(
    "access.store_left_out",
    "A person decided that a copy is built without the stores that do not respond.",
    sentence="{actor} left out stores that do not respond for {object}",
    object=REQUEST,
)
COPY_LINK_MADE = declare(
    "access.link_made",
    "A person made a link for one download of a copy; an earlier link ended.",
    sentence="{actor} made a download link for {object}",
    object=REQUEST,
)
COPY_FETCHED = declare(
    "access.copy_fetched",
    "A person downloaded a copy of a subject's data.",
    sentence="{actor} downloaded the copy of data for {object}",
    object=REQUEST,
)
COPY_HANDED_OVER = declare(
    "access.copy_handed_over",
    "A person handed the copy over to the subject; the request is answered.",
    sentence="{actor} handed over the copy of data for {object}",
    object=REQUEST,
)
COPY_DELETED = declare(
    "access.copy_deleted",
    "The file with a copy of a subject's data was deleted.",
    sentence="{actor} deleted the copy of data for {object}",
    object=REQUEST,
    reasons=("expired", "erased", "cancelled"),
)
