"""Authentication state of a session: times of sign-in, last re-authentication and last use, and the second factor.

Instants are seconds since 1970, because sessions store JSON.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

SIGNED_IN_AT = "signed_in_at"
CONFIRMED_AT = "confirmed_at"
SEEN_AT = "seen_at"
SECOND_FACTOR_OF = "second_factor_of"

RECENT = timedelta(minutes=5)
"""Maximum age of a re-authentication for actions that cannot be undone."""

USE_SECONDS = 60
"""Precision of the time of last use."""


def note_sign_in(request: HttpRequest) -> None:
    now = int(time.time())
    request.session[SIGNED_IN_AT] = request.session[CONFIRMED_AT] = request.session[SEEN_AT] = now


def note_confirmation(request: HttpRequest) -> None:
    """Stores a re-authentication by password, code or passkey."""
    request.session[CONFIRMED_AT] = int(time.time())


def is_confirmed_recently(request: HttpRequest) -> bool:
    return bool(time.time() - request.session.get(CONFIRMED_AT, 0) < RECENT.total_seconds())


def note_second_factor(request: HttpRequest, person: User) -> None:
    """Stores that this session used, or set up, a second factor of this user."""
    request.session[SECOND_FACTOR_OF] = person.pk


def has_second_factor(request: HttpRequest) -> bool:
    """Whether this session used a second factor of its current user; it may have begun with another user."""
    return bool(request.session.get(SECOND_FACTOR_OF) == request.user.pk)


def why_over(request: HttpRequest) -> Literal["idle", "long", ""]:
    """Why the session has expired: unused for too long, or open for too long; empty if it is valid."""
    now = time.time()
    if now - request.session.get(SIGNED_IN_AT, 0) >= settings.SESSION_LIMIT.total_seconds():
        return "long"
    if now - request.session.get(SEEN_AT, 0) >= settings.IDLE_LIMIT.total_seconds():
        return "idle"
    return ""


def note_use(request: HttpRequest) -> bool:
    """Whether the use was stored: at most once a minute, so at most one write a minute."""
    now = int(time.time())
    is_due = bool(now - request.session.get(SEEN_AT, 0) >= USE_SECONDS)
    if is_due:
        request.session[SEEN_AT] = now
    return is_due
