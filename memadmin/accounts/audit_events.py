"""What accounts and grants tell the audit log."""

from __future__ import annotations

from memadmin.accounts.models import ContentGrant, Notice
from memadmin.accounts.purposes import Purpose
from memadmin.audit.log.reasons import EditReason
from memadmin.audit.log.types import declare

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
NOTICE_SENT = declare(
    "grant.notice_sent",
    "Those who decide on grants were told of one by e-mail; the reason says what of it.",
    object=GRANT,
    counters=("addresses",),
    reasons=[kind for kind in Notice.Kind.values if kind != Notice.Kind.READING],
)

FACTORS = ("totp", "webauthn", "recovery_codes")

SIGNED_IN = declare(
    "person.signed_in",
    "Somebody signed in; the reason says with what besides the password, or instead of it.",
    object="auth.user",
    reasons=("password", "company_account", *FACTORS),
)
SIGN_IN_FAILED = declare(
    "person.sign_in_failed",
    "A sign-in was refused. The person is named when the account exists; what was typed is kept nowhere.",
    object="auth.user",
    reasons=(
        *("wrong_password", "wrong_code", "too_many_tries"),
        # Of the company's sign-in.
        *("not_invited", "not_verified", "ambiguous", "cancelled", "provider"),
    ),
)
SIGNED_OUT = declare("person.signed_out", "Somebody signed out.", object="auth.user")
SESSIONS_ENDED = declare(
    "person.sessions_ended",
    "Open sessions of a person were ended: by themselves, or because the account was switched off.",
    object="auth.user",
    counters=("sessions",),
)
CONFIRMED = declare(
    "person.confirmed",
    "Somebody signed in showed again who they are, before something that cannot be undone.",
    object="auth.user",
    reasons=("password", *FACTORS),
)
PASSWORD_CHANGED = declare("person.password_changed", "Somebody changed their own password.", object="auth.user")
SECOND_FACTOR_ADDED = declare(
    "second_factor.added", "A person set up a second factor.", object="auth.user", reasons=FACTORS
)
SECOND_FACTOR_REMOVED = declare(
    "second_factor.removed", "A person removed a second factor of theirs.", object="auth.user", reasons=FACTORS
)
SECOND_FACTOR_RESET = declare(
    "second_factor.reset",
    "All second factors of a person were taken away, and their sessions ended, so that they set up a new one.",
    object="auth.user",
    counters=("factors",),
    reasons=EditReason.values,
)

PURPOSE_STATED = declare(
    "purpose.stated",
    "Somebody said what they read people's conversations for; the ticket is in the details.",
    reasons=Purpose.values,
)
READING_NOTICED = declare(
    "reading.noticed",
    "Somebody opened more sessions within an hour than is usual; they go on.",
    object="auth.user",
    counters=("sessions",),
)
READING_TOLD = declare(
    "reading.notice_sent",
    "Those who decide on grants were told by e-mail that somebody opened more sessions within an hour than is usual.",
    object="audit.auditevent",
    counters=("addresses",),
)
READING_STOPPED = declare(
    "reading.stopped",
    "Somebody was shown no further session: they opened as many within an hour as one person may.",
    object="auth.user",
    counters=("sessions",),
)
