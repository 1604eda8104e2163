"""Audit events of legal holds, retention policies and their runs."""

from __future__ import annotations

from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.types import declare

assign(EventGroup.RETENTION, "hold", "legal_hold", "retention", "retention_policy", "retention_policy_version")

HOLD = "retention.legalhold"

HOLD_PLACED = declare(
    "hold.placed",
    "A person placed a legal hold: its data cannot be deleted any more.",
    sentence="{actor} placed {object}[ on {sessions}]",
    object=HOLD,
    counters=("sessions",),
)
HOLD_CHANGED = declare(
    "hold.changed",
    "A person changed the owner or the review date of a legal hold.",
    sentence="{actor} changed the owner or review date of {object}",
    object=HOLD,
)
HOLD_RELEASED = declare(
    "hold.released",
    "A second person approved the release of a legal hold.",
    sentence="{actor} released {object}",
    object=HOLD,
)

VERSION = "retention.policyversion"

CHANGE_MADE = declare(
    "retention.changed",
    "A person changed a retention policy; the change keeps data for longer, so it needed no approval.",
    sentence="{actor} made {object}",
    object=VERSION,
)
CHANGE_APPROVED = declare(
    "retention.change_approved",
    "A second person approved a change of a retention policy. It takes effect after the grace period.",
    sentence="{actor} approved {object}",
    object=VERSION,
)
CHANGE_CANCELLED = declare(
    "retention.change_cancelled",
    "A person cancelled an approved change of a retention policy in its grace period.",
    sentence="{actor} cancelled {object}",
    object=VERSION,
)
ROWS_EXPIRED = declare(
    "retention.rows_expired",
    "A retention run deleted or changed data whose time was over, under one version of a policy.",
    sentence="{actor} removed {rows} under {object}",
    object=VERSION,
    counters=("rows", "items", "held"),
)
ITEMS_EXPIRED = declare(
    "retention.items_expired",
    "A retention run deleted or redacted items of a session whose time was over.",
    sentence="{actor} removed {items} of {object}",
    object="sessions_app.sessionrecord",
    counters=("items",),
)
RETENTION_PREVIEWED = declare(
    "retention.previewed",
    "A person counted what a retention policy, or a change of one, would take.",
    sentence="{actor} counted what a retention policy would take",
)
