"""Audit events of legal holds."""

from __future__ import annotations

from memadmin.audit.log.types import declare

HOLD = "retention.legalhold"

HOLD_PLACED = declare(
    "hold.placed",
    "A person placed a legal hold: its data cannot be deleted any more.",
    object=HOLD,
    counters=("sessions",),
)
HOLD_CHANGED = declare("hold.changed", "A person changed the owner or the review date of a legal hold.", object=HOLD)
HOLD_RELEASE_REQUESTED = declare(
    "hold.release_requested", "A person requested the release of a legal hold.", object=HOLD
)
HOLD_RELEASED = declare("hold.released", "A second person approved the release of a legal hold.", object=HOLD)
HOLD_KEPT = declare("hold.kept", "A request to release a legal hold was rejected or withdrawn.", object=HOLD)
HOLD_REFUSED = declare(
    "hold.release_denied", "A person tried to approve a release that they had requested themselves.", object=HOLD
)
