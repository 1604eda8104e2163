"""Invitations: links with which a person sets the password of their account.

A link contains a signed token and works once, for a limited time; the database has a digest of it. Opening the page
uses nothing up, because scanners of mail do that too.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from datetime import timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import audit_events, user_actions
from memadmin.accounts.models import Invitation

logger = logging.getLogger(__name__)

LINK_LIFETIME = timedelta(days=3)
KEPT_FOR = timedelta(days=30)
"""Time after which the row of an ended link is deleted; until then a use of the link is recorded with its reason."""

SIGNER = Signer(salt="memadmin.accounts.people.invitations", sep=".")
"""The separator is none of the characters of a token, and needs no escape in an address."""


class InvalidLink(Exception):
    """The link does not work, any more or at all. `person` and `reason_code` are set for links that once worked."""

    def __init__(self, person: User | None = None, reason_code: str = "") -> None:
        super().__init__("This link does not work.")
        self.person, self.reason_code = person, reason_code


@transaction.atomic
def make_link(person: User, *, by: User, is_mailed: bool) -> str:
    """The token of a new link, which is not stored; earlier links of this account end."""
    audit.record(audit_events.PERSON_INVITED, by=by, target=person, reason_code="mailed" if is_mailed else "shown")
    end_links(person)
    token = secrets.token_urlsafe(32)
    Invitation.objects.create(person=person, digest=digest(token), made_by=by, expires_at=now() + LINK_LIFETIME)
    return SIGNER.sign(token)


def end_links(person: User) -> None:
    """Ends the unused links of this account."""
    Invitation.objects.filter(person=person, used_at__isnull=True).update(used_at=now())


def person_invited_by(token: str) -> User:
    """The person whom a link invites. Raises InvalidLink. One query; uses nothing up."""
    return valid(token).person


@transaction.atomic
def accept(token: str, password: str) -> User:
    """Sets the password of the invited person, uses the link up, and ends their open sessions.

    Raises InvalidLink. Who could sign in to the account before, can still not confirm its rights: whoever saw the link
    could have used it.
    """
    # The account first, in the same order as when it is switched off.
    person = User.objects.select_for_update().get(pk=valid(token).person_id)
    invitation = valid(token)
    audit.record(audit_events.INVITATION_ACCEPTED, by=person, target=person)
    person.set_password(password)
    person.save(update_fields=["password"])
    invitation.used_at = now()
    invitation.save(update_fields=["used_at"])
    user_actions.end_sessions(person, UserSession.objects.filter(user=person), by=person)
    return person


def valid(token: str) -> Invitation:
    """The invitation of a link that works now. Raises InvalidLink. One query."""
    try:
        known = SIGNER.unsign(token)
    except BadSignature:
        raise InvalidLink from None
    invitation = Invitation.objects.select_related("person").filter(digest=digest(known)).first()
    if invitation is None:
        raise InvalidLink
    if not invitation.person.is_active:
        raise InvalidLink(invitation.person, "switched_off")
    if invitation.used_at:
        raise InvalidLink(invitation.person, "used")
    if invitation.expires_at <= now():
        raise InvalidLink(invitation.person, "expired")
    return invitation


def digest(token: str) -> str:
    """The stored form of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def path_of(token: str) -> str:
    return reverse("accounts:invitation", args=[token])


def mail_link(person: User, token: str) -> bool:
    """Sends a link to the address of the account; whether the mail server took it."""
    days = LINK_LIFETIME.days
    mail = EmailMessage(
        subject="memadmin: set your password",
        body=(
            "An administrator of memadmin, the console for conversations and memories of agents, sent you this link."
            f" Set your password with it, once and within {days} days:\n\n"
            f"{settings.CONSOLE_URL}{path_of(token)}\n\n"
            f"Your user name is {person.get_username()}. If you do not expect this mail, ignore it.\n"
        ),
        to=[person.email],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except OSError as problem:  # includes all exceptions of smtplib
        # Its message may contain addresses.
        logger.warning("A link for setting a password was not sent: %s", type(problem).__name__)
        return False
    return True


def forget_old_links() -> int:
    """Deletes links that ended 30 days ago; returns their number."""
    deleted, _ = Invitation.objects.filter(expires_at__lt=now() - KEPT_FOR).delete()
    return deleted
