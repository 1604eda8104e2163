"""People for whom commands act."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management.base import CommandError


def acting_person(name: str | None, permission: str, option: str = "--by") -> User:
    """The active user of this name, given by an option of the command. Raises CommandError if there is none, or if they
    do not have the permission.
    """
    # Without the password hash, which the worker may not read.
    user = User.objects.defer("password").filter(username=name or "", is_active=True).first()
    if user is None:
        raise CommandError(
            f"There is no active user {name}. Nothing was changed." if name else f"Give a person with {option}."
        )
    if not user.has_perm(permission):
        raise CommandError(f"{name} has no role that allows this. Nothing was changed.")
    return user
