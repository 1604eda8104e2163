"""Actions on a user's account: each verb once, for pages, Django admin and commands."""

from __future__ import annotations

from collections.abc import Iterable

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from memadmin import audit
from memadmin.accounts import audit_events, open_sessions


class OwnSecondFactor(Exception):
    def __init__(self) -> None:
        super().__init__(
            "You cannot reset your own second factor. Ask another administrator, or replace it on your account page."
        )


class LastSecondFactor(Exception):
    def __init__(self) -> None:
        super().__init__("This is your last second factor. Add another one first, then remove it.")


@transaction.atomic
def reset_second_factor(person: User, *, by: User | None, why: audit.Why = audit.UNSAID) -> int:
    """Removes all of a user's factors and recovery codes, and ends their sessions; returns the number of factors.

    The next sign-in needs only the password and then requires a new factor. `by` is None for the command line.
    Raises OwnSecondFactor: access to an administrator's open session must not be enough to remove theirs.
    """
    if by == person:
        raise OwnSecondFactor
    factors = Authenticator.objects.filter(user=person)
    count = int(factors.exclude(type=Authenticator.Type.RECOVERY_CODES).count())
    audit.record(
        audit_events.SECOND_FACTOR_RESET,
        by=by,
        target=person,
        counters={"factors": count},
        reason_code=why.code,
        details=why.details,
    )
    factors.delete()
    end_sessions(person, UserSession.objects.filter(user=person), by=by)
    return count


@transaction.atomic
def remove_second_factor(factor: Authenticator, *, by: User) -> None:
    """Removes one factor; the last one with the recovery codes. Raises LastSecondFactor where a factor is required."""
    # Two concurrent removals must not remove the last factor.
    User.objects.select_for_update().get(pk=by.pk)
    others = Authenticator.objects.filter(user=by).exclude(pk=factor.pk)
    is_last = not others.exclude(type=Authenticator.Type.RECOVERY_CODES).exists()
    if is_last and settings.SECOND_FACTOR_REQUIRED:
        raise LastSecondFactor
    audit.record(audit_events.SECOND_FACTOR_REMOVED, by=by, target=by, reason_code=factor.type)
    factor.delete()
    if is_last:
        others.delete()


@transaction.atomic
def end_sessions(person: User, sessions: Iterable[UserSession], *, by: User | None) -> int:
    """Signs out sessions of this user on all devices; returns their number."""
    ending = list(sessions)
    if ending:
        audit.record(audit_events.SESSIONS_ENDED, by=by, target=person, counters={"sessions": len(ending)})
    for session in ending:
        open_sessions.end(session)
    return len(ending)
