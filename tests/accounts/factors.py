"""Second factors in tests: what an authenticator app does."""

from __future__ import annotations

import time

from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client

from memadmin.accounts.reauth import CONFIRMED_AT, SECOND_FACTOR_OF


def code_of(secret: str) -> str:
    """What the app shows now, as if no code was used or tried before."""
    cache.clear()
    return code_shown_for(secret)


def code_shown_for(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def with_app(person: User) -> str:
    """Gives somebody an authenticator app and recovery codes; returns the app's key."""
    secret = str(generate_totp_secret())
    TOTP.activate(person, secret)
    RecoveryCodes.activate(person)
    return secret


def recovery_codes_of(person: User) -> list[str]:
    codes = Authenticator.objects.get(user=person, type=Authenticator.Type.RECOVERY_CODES)
    return list(codes.wrap().get_unused_codes())


def note_factor(client: Client, person: User) -> None:
    """The client's session has used a second factor."""
    session = client.session
    session[SECOND_FACTOR_OF] = person.pk
    session.save()


def let_proof_age(client: Client, seconds: int = 301) -> None:
    session = client.session
    session[CONFIRMED_AT] -= seconds
    session.save()
