"""Who may sign in, and what they may do."""

from __future__ import annotations

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.contrib.auth.models import AnonymousUser, User
from django.db import connection

RIGHTS = """
SELECT kind.app_label || '.' || permission.codename
FROM auth_permission AS permission JOIN django_content_type AS kind ON kind.id = permission.content_type_id
WHERE permission.id IN (
    SELECT permission_id FROM auth_user_user_permissions WHERE user_id = %(user)s
    UNION ALL
    SELECT of_role.permission_id FROM auth_group_permissions AS of_role JOIN auth_user_groups USING (group_id)
    WHERE user_id = %(user)s
)
"""


class OperatorBackend(AuthenticationBackend):  # type: ignore[misc]  # untyped in allauth
    """Signing in is allauth's. What somebody may do is one query a request, where Django takes two."""

    def get_all_permissions(self, user_obj: User | AnonymousUser, obj: Any = None) -> set[str]:
        # Where Django itself keeps the answer for as long as this object lives.
        if obj is None and user_obj.is_active and not user_obj.is_superuser and not hasattr(user_obj, "_perm_cache"):
            with connection.cursor() as cursor:
                cursor.execute(RIGHTS, {"user": user_obj.pk})
                user_obj._perm_cache = {name for (name,) in cursor.fetchall()}  # type: ignore[attr-defined]
        return super().get_all_permissions(user_obj, obj)  # type: ignore[no-any-return]
