"""What a session knows of who is in front of it: when they signed in, when they last showed it, with which factors.

Instants are seconds since 1970, because a session holds JSON.
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
"""How old a proof may be for what cannot be undone."""

USE_SECONDS = 60
"""How exactly a session knows when it was used last."""


def note_sign_in(request: HttpRequest) -> None:
    now = int(time.time())
    request.session[SIGNED_IN_AT] = request.session[CONFIRMED_AT] = request.session[SEEN_AT] = now


def note_confirmation(request: HttpRequest) -> None:
    """To be called when the person has just shown a password, a code or a passkey."""
    request.session[CONFIRMED_AT] = int(time.time())


def is_confirmed_recently(request: HttpRequest) -> bool:
    return bool(time.time() - request.session.get(CONFIRMED_AT, 0) < RECENT.total_seconds())


def note_second_factor(request: HttpRequest, person: User) -> None:
    """To be called when this session has used, or set up, a second factor of this person."""
    request.session[SECOND_FACTOR_OF] = person.pk


def has_second_factor(request: HttpRequest) -> bool:
    """Whether this session used one of the person's whom it belongs to now; it may have begun as somebody else's."""
    return bool(request.session.get(SECOND_FACTOR_OF) == request.user.pk)


def why_over(request: HttpRequest) -> Literal["idle", "long", ""]:
    """Whether the session of somebody signed in has ended by itself: unused for too long, or open for too long."""
    now = time.time()
    if now - request.session.get(SIGNED_IN_AT, 0) >= settings.SESSION_LIMIT.total_seconds():
        return "long"
    if now - request.session.get(SEEN_AT, 0) >= settings.IDLE_LIMIT.total_seconds():
        return "idle"
    return ""


def note_use(request: HttpRequest) -> bool:
    """Whether it was noted: once a minute is enough, and costs one write a minute."""
    now = int(time.time())
    is_due = bool(now - request.session.get(SEEN_AT, 0) >= USE_SECONDS)
    if is_due:
        request.session[SEEN_AT] = now
    return is_due
