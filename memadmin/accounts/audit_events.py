"""Audit events of accounts and grants."""

from __future__ import annotations

from memadmin.accounts.models import ContentGrant, Notice
from memadmin.accounts.purposes import Purpose
from memadmin.audit.log.reasons import EditReason
from memadmin.audit.log.types import declare

GRANT = "accounts.contentgrant"

GRANT_REQUESTED = declare(
    "grant.requested",
    "A person requested access to locked sessions; the ticket and the explanation are in the details.",
    object=GRANT,
    counters=("sessions", "minutes"),
    reasons=ContentGrant.Reason.values,
)
GRANT_OPENED = declare(
    "grant.opened",
    "A grant became active: the requester can read the listed sessions until it ends.",
    object=GRANT,
    counters=("sessions", "minutes"),
    reasons=("approved", "no_approval_needed"),
)
GRANT_REFUSED = declare("grant.refused", "A second person rejected a grant.", object=GRANT)
GRANT_ENDED = declare(
    "grant.ended",
    "A grant was ended early.",
    object=GRANT,
    reasons=("given_back", "withdrawn", "taken_back"),
)
GRANT_REVIEWED = declare(
    "grant.reviewed", "A person reviewed the reads made under a grant; the result is in the details.", object=GRANT
)
NOTICE_SENT = declare(
    "grant.notice_sent",
    "Approvers of grants were notified by e-mail; the reason code is the kind of notice.",
    object=GRANT,
    counters=("addresses",),
    reasons=[kind for kind in Notice.Kind.values if kind not in (Notice.Kind.READING, Notice.Kind.ROLE)],
)

ROLE_REQUESTED = declare(
    "role.requested",
    "An administrator requested a role or another right for a person; which one is in the details.",
    object="auth.user",
    reasons=EditReason.values,
)
ROLE_GRANTED = declare(
    "role.granted",
    "A person got a right that opens content, decides or administers, confirmed by a second administrator or given by"
    " an operator's command; which one is in the details.",
    object="auth.user",
    reasons=("confirmed", "operator"),
)
ROLE_REFUSED = declare(
    "role.refused",
    "A request for a right was rejected by another administrator, or withdrawn by its requester.",
    object="auth.user",
    reasons=("rejected", "withdrawn"),
)
ROLE_TOLD = declare(
    "role.notice_sent",
    "Compliance was notified by e-mail that a person got a right that opens content, decides or administers.",
    object="audit.auditevent",
    counters=("addresses",),
)

FACTORS = ("totp", "webauthn", "recovery_codes")

SIGNED_IN = declare(
    "person.signed_in",
    "A person signed in; the reason code is the method: password, company account or second factor.",
    object="auth.user",
    reasons=("password", "company_account", *FACTORS),
)
SIGN_IN_FAILED = declare(
    "person.sign_in_failed",
    "A sign-in failed. The account is recorded if it exists; the typed user name and password are not stored.",
    object="auth.user",
    reasons=(
        *("wrong_password", "wrong_code", "too_many_tries"),
        # Of the company's sign-in.
        *("not_invited", "not_verified", "ambiguous", "cancelled", "provider"),
    ),
)
SIGNED_OUT = declare("person.signed_out", "A person signed out.", object="auth.user")
SESSIONS_ENDED = declare(
    "person.sessions_ended",
    "Sign-ins of a person were ended, by that person or because the account was disabled.",
    object="auth.user",
    counters=("sessions",),
)
CONFIRMED = declare(
    "person.confirmed",
    "A signed-in person re-authenticated before a sensitive action.",
    object="auth.user",
    reasons=("password", *FACTORS),
)
PASSWORD_CHANGED = declare("person.password_changed", "A person changed their own password.", object="auth.user")
SECOND_FACTOR_ADDED = declare(
    "second_factor.added", "A person set up a second factor.", object="auth.user", reasons=FACTORS
)
SECOND_FACTOR_REMOVED = declare(
    "second_factor.removed", "A person removed one of their second factors.", object="auth.user", reasons=FACTORS
)
SECOND_FACTOR_RESET = declare(
    "second_factor.reset",
    "All second factors of a person were removed and their sign-ins ended, so that they set up a new one.",
    object="auth.user",
    counters=("factors",),
    reasons=EditReason.values,
)

PURPOSE_STATED = declare(
    "purpose.stated",
    "A person chose a purpose for reading conversations; the ticket is in the details.",
    reasons=Purpose.values,
)
READING_NOTICED = declare(
    "reading.noticed",
    "A person opened unusually many sessions within an hour; access continues.",
    object="auth.user",
    counters=("sessions",),
)
READING_TOLD = declare(
    "reading.notice_sent",
    "Approvers of grants were notified by e-mail that a person opened unusually many sessions within an hour.",
    object="audit.auditevent",
    counters=("addresses",),
)
READING_STOPPED = declare(
    "reading.stopped",
    "Access to further sessions was refused: the person reached the hourly limit.",
    object="auth.user",
    counters=("sessions",),
)
