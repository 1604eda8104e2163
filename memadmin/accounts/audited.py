"""What accounts and grants tell the audit log."""

from __future__ import annotations

from memadmin.accounts.models import ContentGrant
from memadmin.audit.types import declare

GRANT = "accounts.contentgrant"

GRANT_REQUESTED = declare(
    "grant.requested",
    "Somebody asked for leave to read locked sessions; the ticket and the explanation are in the details.",
    object=GRANT,
    counters=("sessions", "minutes"),
    reasons=ContentGrant.Reason.values,
)
GRANT_OPENED = declare(
    "grant.opened",
    "A grant opened: its requester may read the listed sessions until it ends.",
    object=GRANT,
    counters=("sessions", "minutes"),
    reasons=("approved", "no_approval_needed"),
)
GRANT_REFUSED = declare("grant.refused", "A second person refused a grant.", object=GRANT)
GRANT_ENDED = declare(
    "grant.ended",
    "A grant was ended before its time.",
    object=GRANT,
    reasons=("given_back", "withdrawn", "taken_back"),
)
GRANT_REVIEWED = declare(
    "grant.reviewed", "Somebody looked at what was read under a grant; what they found is in the details.", object=GRANT
)
