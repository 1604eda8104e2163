"""Proxies of Django's tables of users, roles and permissions, with triggers that record each change."""

from __future__ import annotations

from typing import ClassVar

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User

from memadmin import audit
from memadmin.audit.log.triggers import Calling

SIGNS_IN = ("username", "email", "password", "is_active", "is_superuser")
"""Columns of an account that decide who signs in, and what they may."""


def changed_by_proven(*columns: str) -> Calling:
    """A trigger: a role that does not own the table sets these columns, or any, as a proven actor alone."""
    quoted = ", ".join(f"'{column}'" for column in columns)
    call = f"memadmin_account_is_proven({quoted})"
    return Calling("proven", call, before="INSERT OR UPDATE", asks_for_actor=True)


class GovernedUser(User):
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [
            # The random id of a person in the log is created and deleted with the account.
            Calling("make_actor", "memadmin_make_actor()", after="INSERT"),
            Calling("forget_actor", "memadmin_forget_actor()", after="DELETE"),
            changed_by_proven(*SIGNS_IN),
            *audit.govern(
                "user",
                columns=[
                    "username",
                    "first_name",
                    "last_name",
                    "email",
                    "is_active",
                    "is_staff",
                    "is_superuser",
                    "password",
                ],
                hidden=["password"],
                forgotten_when_deleted=True,
            ),
        ]


class GovernedGroup(Group):
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = audit.govern("role", columns=["name"])


class UserRole(User.groups.through):  # type: ignore[name-defined,misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [*audit.govern("user_role", columns=["user", "group"]), changed_by_proven()]


class UserPermission(User.user_permissions.through):  # type: ignore[name-defined,misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [*audit.govern("user_permission", columns=["user", "permission"]), changed_by_proven()]


class RolePermission(Group.permissions.through):  # type: ignore[name-defined,misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [*audit.govern("role_permission", columns=["group", "permission"]), changed_by_proven()]


class SignInAddress(EmailAddress):  # type: ignore[misc]  # of django-allauth, without types
    """By a verified address the company's provider finds an account."""

    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [changed_by_proven()]


class CompanyAccount(SocialAccount):  # type: ignore[misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [changed_by_proven("uid", "provider", "user_id")]


class GovernedFactor(Authenticator):  # type: ignore[misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [changed_by_proven("user_id", "type", "data")]
