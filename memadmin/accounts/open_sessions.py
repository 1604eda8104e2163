"""Open sign-ins of a user: allauth's rows of browsers, under the same digests as the sessions.

allauth's own functions would store the keys of sessions, and look for sessions by them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from allauth.account.adapter import get_adapter
from allauth.usersessions.models import UserSession
from django.contrib.auth import HASH_SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.utils.crypto import constant_time_compare
from django.utils.timezone import now

from memadmin.accounts.session_store import data_of, digest_of


def record(request: HttpRequest, user: User) -> None:
    """Adds the browser of this request to the user's open sign-ins, or updates it."""
    if not request.session.session_key:
        request.session.save()
    longest = UserSession._meta.get_field("user_agent").max_length
    UserSession.objects.update_or_create(
        session_key=key_of(request),
        defaults={
            "user": user,
            "ip": get_adapter().get_client_ip(request),
            "user_agent": request.META.get("HTTP_USER_AGENT", "")[:longest],
            "last_seen_at": now(),
        },
    )


def key_of(request: HttpRequest) -> str:
    """The key of this request's session in `UserSession`."""
    return digest_of(request.session.session_key or "")


def open_to(user: User) -> list[UserSession]:
    """Open sign-ins of a user, the last used first.

    Deletes rows whose session is gone, has expired, or is from before a new password. Two queries, and one more if it
    deletes.
    """
    rows = {row.session_key: row for row in UserSession.objects.filter(user=user).order_by("-last_seen_at", "pk")}
    sessions = Session.objects.filter(session_key__in=rows, expire_date__gt=now())
    alive = {session.session_key for session in sessions if user.is_active and _is_of(user, session)}
    if gone := rows.keys() - alive:
        UserSession.objects.filter(user=user, session_key__in=gone).delete()
    return [row for key, row in rows.items() if key in alive]


def count_open(users: Sequence[User]) -> Counter[int]:
    """Number of open sign-ins by the primary key of the user. Three queries, and no row is deleted."""
    passwords = User.objects.only("password").in_bulk([user.pk for user in users if user.is_active])
    owners = dict(UserSession.objects.filter(user__in=passwords).values_list("session_key", "user_id"))
    sessions = Session.objects.filter(session_key__in=owners, expire_date__gt=now())
    keys = ((owners[session.session_key], session) for session in sessions)
    return Counter(owner for owner, session in keys if _is_of(passwords[owner], session))


def end(row: UserSession) -> None:
    """Signs this browser out."""
    Session.objects.filter(session_key=row.session_key).delete()
    row.delete()


def _is_of(user: User, session: Session) -> bool:
    """True if the session was opened with the user's current password, and an accepted secret key."""
    opened_with = data_of(session).get(HASH_SESSION_KEY, "")
    hashes = [user.get_session_auth_hash(), *user.get_session_auth_fallback_hash()]
    return any(constant_time_compare(opened_with, each) for each in hashes)
