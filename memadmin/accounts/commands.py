"""People for whom commands act."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.core.management.base import CommandError

from memadmin.accounts.same_person import is_same_person


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


def two_people(given: Mapping[str, str | None], requests: str, approves: str) -> tuple[User, User]:
    """The requester and another person who approves, of the options of a command, with these permissions.

    Raises CommandError.
    """
    requester = acting_person(given["requested_by"], requests, "--requested-by")
    second = acting_person(given["approved_by"], approves, "--approved-by")
    if is_same_person(requester, second):
        raise CommandError("Another person than the requester has to approve. Nothing was changed.")
    return requester, second
