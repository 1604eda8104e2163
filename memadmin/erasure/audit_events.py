"""Audit events of requests of people about their data, and of the data map."""

from __future__ import annotations

from memadmin.audit.log.types import declare
from memadmin.erasure.models import SubjectRequest

REQUEST = "erasure.subjectrequest"
PROCESSING_RECORD = "erasure.processingrecord"

REQUEST_OPENED = declare(
    "request.opened", "A person's request was opened.", object=REQUEST, reasons=SubjectRequest.Kind.values
)
REQUEST_JOINED = declare("request.joined", "A request was received again; it joined the open one.", object=REQUEST)
IDENTITY_CHECKED = declare("request.identity_checked", "The identity behind a request was checked.", object=REQUEST)
REQUEST_PREVIEWED = declare(
    "request.previewed", "What an erasure would erase was counted.", object=REQUEST, counters=("rows", "held")
)
APPROVAL_REQUESTED = declare("request.approval_requested", "A person asked for approval of an erasure.", object=REQUEST)
REQUEST_APPROVED = declare("request.approved", "A second person approved an erasure.", object=REQUEST)
APPROVAL_DENIED = declare(
    "request.approval_denied", "A person tried to approve an erasure that they had requested.", object=REQUEST
)
REQUEST_SENT_BACK = declare("request.sent_back", "An erasure was sent back instead of approved.", object=REQUEST)
REQUEST_CANCELLED = declare("request.cancelled", "A request was cancelled before anything was erased.", object=REQUEST)
REQUEST_REFUSED = declare(
    "request.refused", "A request was refused.", object=REQUEST, reasons=SubjectRequest.Refusal.values
)
REQUEST_EXTENDED = declare("request.extended", "The time to answer a request was extended.", object=REQUEST)
REQUEST_COMMENTED = declare("request.commented", "A person added a comment to a request.", object=REQUEST)
REQUEST_REMINDED = declare(
    "request.reminded", "A reminder of a request's due date was sent.", object=REQUEST, counters=("percent",)
)
ERASURE_STARTED = declare(
    "request.started", "An erasure began: from now on nothing is stored about the subject.", object=REQUEST
)
ROWS_ERASED = declare(
    "request.rows_erased",
    "One chunk of an erasure; the further records are its sessions.",
    object=REQUEST,
    counters=("rows", "held"),
)
STEP_LEFT_OUT = declare(
    "request.step_left_out", "A person decided that an erasure ends without one of its steps.", object=REQUEST
)
ERASURE_SCANNED = declare(
    "request.scanned", "All places were searched for a person's ids.", object=REQUEST, counters=("rows", "found")
)
REQUEST_CLOSED = declare(
    "request.closed",
    "A request was answered. The further record is the id of its receipt.",
    object=REQUEST,
    counters=("rows", "held", "exceptions"),
)
REQUEST_REOPENED = declare(
    "request.reopened", "A scan found data of an erased person: the case was opened again.", object=REQUEST
)
RECEIPT_DOWNLOADED = declare("request.receipt_downloaded", "A person downloaded a receipt.", object=REQUEST)

RECORD_CHANGED = declare(
    "processing_record.changed",
    "A person changed the head of the record of processing activities.",
    object=PROCESSING_RECORD,
)
