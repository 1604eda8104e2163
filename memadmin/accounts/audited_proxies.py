"""Proxies of Django's tables of users, roles and permissions, with triggers that record each change."""

from __future__ import annotations

from typing import ClassVar

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group, User

from memadmin import audit
from memadmin.audit.log.triggers import Calling


class GovernedUser(User):
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [
            # The random id of a person in the log is created and deleted with the account.
            Calling("make_actor", "memadmin_make_actor()", after="INSERT"),
            Calling("forget_actor", "memadmin_forget_actor()", after="DELETE"),
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
        triggers: ClassVar = audit.govern("user_role", columns=["user", "group"])


class UserPermission(User.user_permissions.through):  # type: ignore[name-defined,misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = audit.govern("user_permission", columns=["user", "permission"])


class RolePermission(Group.permissions.through):  # type: ignore[name-defined,misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = audit.govern("role_permission", columns=["group", "permission"])


class SignInAddress(EmailAddress):  # type: ignore[misc]  # of django-allauth, without types
    """By a verified address the company's provider finds an account."""

    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [audit.by_proven()]


class CompanyAccount(SocialAccount):  # type: ignore[misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [audit.by_proven()]


class GovernedFactor(Authenticator):  # type: ignore[misc]
    class Meta:
        proxy = True
        default_permissions = ()
        triggers: ClassVar = [audit.by_proven()]
