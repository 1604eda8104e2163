"""Audit events of accounts and grants."""

from __future__ import annotations

from memadmin.accounts.models import Approval, ContentGrant, Notice
from memadmin.accounts.purposes import Purpose
from memadmin.audit.log.groups import EventGroup, assign
from memadmin.audit.log.reasons import EditReason
from memadmin.audit.log.types import ANY_OBJECT, declare

assign(EventGroup.SIGN_IN, "person", "second_factor")
assign(
    EventGroup.RIGHTS,
    "approval",
    "grant",
    "granted_session",
    "role",
    "role_permission",
    "role_request",
    "user",
    "user_role",
    "user_permission",
    "purpose",
    "reading",
)

GRANT = "accounts.contentgrant"

APPROVAL_REQUESTED = declare(
    "approval.requested",
    "A person requested what takes a second person; what it is about is in the details.",
    sentence="{actor} requested {object}",
    object=ANY_OBJECT,
    reasons=tuple(dict.fromkeys((*EditReason, *ContentGrant.Reason))),
)
APPROVAL_DECIDED = declare(
    "approval.decided",
    "A person decided about what takes a second person: the reason code says how. Denied: the person may not decide,"
    " for example because the request is their own.",
    sentence="{actor} decided about {object}",
    object=ANY_OBJECT,
    reasons=Approval.Decision,
)
GRANT_OPENED = declare(
    "grant.opened",
    "A grant became active: the requester can read the listed sessions until it ends.",
    sentence="{object} became active[ for {sessions}]",
    object=GRANT,
    counters=("sessions", "minutes"),
    reasons=("approved", "no_approval_needed"),
)
GRANT_ENDED = declare(
    "grant.ended",
    "A grant was ended early.",
    sentence="{actor} ended {object}",
    object=GRANT,
    reasons=("given_back", "taken_back"),
)
GRANT_REVIEWED = declare(
    "grant.reviewed",
    "A person reviewed the reads made under a grant; the result is in the details.",
    sentence="{actor} reviewed the reads under {object}",
    object=GRANT,
)
NOTICE_SENT = declare(
    "grant.notice_sent",
    "Approvers of grants were notified by e-mail; the reason code is the kind of notice.",
    sentence="Approvers were notified of {object}",
    object=GRANT,
    counters=("addresses",),
    reasons=[kind for kind in Notice.Kind.values if kind not in (Notice.Kind.READING, Notice.Kind.ROLE)],
)

ROLE_GRANTED = declare(
    "role.granted",
    "A person got a right that opens content, decides or administers, confirmed by a second administrator or given by"
    " an operator's command; which one is in the details.",
    sentence="{actor} gave {object} a right",
    object="auth.user",
    reasons=("confirmed", "operator"),
)
ROLE_TOLD = declare(
    "role.notice_sent",
    "Compliance was notified by e-mail that a person got a right that opens content, decides or administers.",
    sentence="Compliance was notified of a right that was given",
    object="audit.auditevent",
    counters=("addresses",),
)

ROLE_GIVEN = declare(
    "role.given",
    "An administrator gave a role that needs no second person; which one is in the details.",
    sentence="{actor} gave a role to {object}",
    object="auth.user",
    reasons=EditReason.values,
)
ROLE_TAKEN = declare(
    "role.taken",
    "An administrator took a role away; which one is in the details.",
    sentence="{actor} took a role from {object}",
    object="auth.user",
    reasons=EditReason.values,
)

PERSON_ADDED = declare(
    "person.added",
    "An administrator added an account.",
    sentence="{actor} added {object}",
    object="auth.user",
    reasons=EditReason.values,
)
PERSON_INVITED = declare(
    "person.invited",
    "An administrator made a link with which a person sets the password of their account, once; earlier links ended."
    " The reason code says whether it was mailed to the address of the account, or shown to the administrator.",
    sentence="{actor} made an invitation for {object}",
    object="auth.user",
    reasons=("mailed", "shown"),
)
INVITATION_ACCEPTED = declare(
    "person.invitation_accepted",
    "A person set the password of their account with a link.",
    sentence="{actor} set the password of {object} with a link",
    object="auth.user",
)
INVITATION_REFUSED = declare(
    "person.invitation_refused",
    "A link for setting a password was refused: it was used before or replaced, has expired, or the account is switched"
    " off.",
    sentence="A link for {object} was refused",
    object="auth.user",
    reasons=("used", "expired", "switched_off"),
)
PERSON_SWITCHED_OFF = declare(
    "person.switched_off",
    "An administrator switched an account off: its sessions and its links ended.",
    sentence="{actor} switched {object} off",
    object="auth.user",
    reasons=EditReason.values,
)
PERSON_SWITCHED_ON = declare(
    "person.switched_on",
    "An administrator switched an account on; rights that need a second person were requested again.",
    sentence="{actor} switched {object} on",
    object="auth.user",
    reasons=EditReason.values,
)

FACTORS = ("totp", "webauthn", "recovery_codes")

SIGNED_IN = declare(
    "person.signed_in",
    "A person signed in; the reason code is the method: password, company account or second factor.",
    sentence="{actor} signed in",
    object="auth.user",
    reasons=("password", "company_account", *FACTORS),
)
SIGN_IN_FAILED = declare(
    "person.sign_in_failed",
    "A sign-in failed. The account is recorded if it exists; the typed user name and password are not stored.",
    sentence="A sign-in failed[ for {object}]",
    object="auth.user",
    reasons=(
        *("wrong_password", "wrong_code", "too_many_tries"),
        # Of the company's sign-in.
        *("not_invited", "not_verified", "ambiguous", "cancelled", "provider"),
    ),
)
SIGNED_OUT = declare("person.signed_out", "A person signed out.", sentence="{actor} signed out", object="auth.user")
SESSIONS_ENDED = declare(
    "person.sessions_ended",
    "Sign-ins of a person were ended, by that person or because the account was disabled.",
    sentence="{actor} ended {sessions} of {object}",
    object="auth.user",
    counters=("sessions",),
)
CONFIRMED = declare(
    "person.confirmed",
    "A signed-in person re-authenticated before a sensitive action.",
    sentence="{actor} re-authenticated",
    object="auth.user",
    reasons=("password", *FACTORS),
)
PASSWORD_CHANGED = declare(
    "person.password_changed",
    "A person changed their own password.",
    sentence="{actor} changed their password",
    object="auth.user",
)
SECOND_FACTOR_ADDED = declare(
    "second_factor.added",
    "A person set up a second factor.",
    sentence="{actor} set up a second factor",
    object="auth.user",
    reasons=FACTORS,
)
SECOND_FACTOR_REMOVED = declare(
    "second_factor.removed",
    "A person removed one of their second factors.",
    sentence="{actor} removed a second factor",
    object="auth.user",
    reasons=FACTORS,
)
SECOND_FACTOR_RESET = declare(
    "second_factor.reset",
    "All second factors of a person were removed and their sign-ins ended, so that they set up a new one.",
    sentence="{actor} reset the second factors of {object}",
    object="auth.user",
    counters=("factors",),
    reasons=EditReason,
)

PURPOSE_STATED = declare(
    "purpose.stated",
    "A person chose a purpose for reading conversations; the ticket is in the details.",
    sentence="{actor} chose a purpose for reading conversations",
    reasons=Purpose,
)
READING_NOTICED = declare(
    "reading.noticed",
    "A person opened unusually many sessions within an hour; access continues.",
    sentence="{object} opened {sessions} within an hour",
    object="auth.user",
    counters=("sessions",),
)
READING_TOLD = declare(
    "reading.notice_sent",
    "Approvers of grants were notified by e-mail that a person opened unusually many sessions within an hour.",
    sentence="Approvers were notified of unusually many openings",
    object="audit.auditevent",
    counters=("addresses",),
)
READING_STOPPED = declare(
    "reading.stopped",
    "Access to further sessions was refused: the person reached the hourly limit.",
    sentence="{object} reached the hourly limit of openings[ after {sessions}]",
    object="auth.user",
    counters=("sessions",),
)
