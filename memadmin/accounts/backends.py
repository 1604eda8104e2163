"""Who may sign in, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection
from django.utils.timezone import now

STANDING = """
ARRAY(
    SELECT (SELECT app_label FROM django_content_type WHERE id = content_type_id) || '.' || codename
    FROM auth_permission WHERE id = ANY (ARRAY(
        SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(user)s
        UNION ALL
        SELECT permission_id FROM auth_group_permissions WHERE group_id = ANY (ARRAY(
            SELECT group_id FROM auth_user_groups WHERE user_id = %(user)s
        ))
    ))
) AS rights, ARRAY(
    SELECT name::text FROM auth_group WHERE id = ANY (ARRAY(
        SELECT group_id FROM auth_user_groups WHERE user_id = %(user)s
    )) ORDER BY name
) AS roles, EXISTS (
    SELECT FROM accounts_contentgrant
    WHERE requested_by_id = %(user)s AND opened_at <= %(now)s AND expires_at > %(now)s AND ended_at IS NULL
) AS has_grant
"""
COLUMNS = [field.attname for field in User._meta.concrete_fields]
PERSON = f"SELECT {', '.join(COLUMNS)}, {STANDING} FROM auth_user WHERE id = %(user)s"


@dataclass(frozen=True, slots=True)
class Standing:
    """What somebody has been given."""

    rights: frozenset[str]
    """As Django names them; a superuser has all others as well."""
    roles: tuple[str, ...]
    has_grant: bool
    """Whether a grant is open, as far as its times tell; `grants.verbs.open_grants` knows whether it still stands."""


def standing_of(user: User) -> Standing:
    """For as long as this object lives: a request has its own, so a change counts from the next one on.

    No query for who asks, and one for anybody else.
    """
    if not hasattr(user, "_standing"):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {STANDING}", {"user": user.pk, "now": now()})
            rights, roles, has_grant = cursor.fetchone()
        user._standing = Standing(frozenset(rights), tuple(roles), has_grant)  # type: ignore[attr-defined]
    return user._standing  # type: ignore[attr-defined,no-any-return]


class OperatorBackend(AuthenticationBackend):  # type: ignore[misc]  # untyped in allauth
    """Signing in is allauth's. Who asks, and what they may do, is one query a request, where Django takes three."""

    def get_user(self, user_id: int) -> User | None:
        with connection.cursor() as cursor:
            cursor.execute(PERSON, {"user": user_id, "now": now()})
            row = cursor.fetchone()
        if row is None:
            return None
        *values, rights, roles, has_grant = row
        user = User.from_db(connection.alias, COLUMNS, values)
        user._standing = Standing(frozenset(rights), tuple(roles), has_grant)  # type: ignore[attr-defined]
        return user if self.user_can_authenticate(user) else None

    def get_all_permissions(self, user_obj: User | AnonymousUser, obj: Any = None) -> set[str]:
        # Where Django itself keeps the answer for as long as this object lives.
        if obj is None and user_obj.is_active and not user_obj.is_superuser and not hasattr(user_obj, "_perm_cache"):
            user_obj._perm_cache = set(standing_of(user_obj).rights)  # type: ignore[attr-defined]
        return super().get_all_permissions(user_obj, obj)  # type: ignore[no-any-return]
