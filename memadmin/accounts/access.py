"""Access to objects of an account: unknown objects and those of other users both answer 404."""

from __future__ import annotations

from typing import TypeVar

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import User
from django.http import Http404

Row = TypeVar("Row")


def own_second_factor(person: User, factor_id: int) -> Authenticator:
    """A second factor of this user; recovery codes are not a factor of their own."""
    factors = Authenticator.objects.filter(user=person).exclude(type=Authenticator.Type.RECOVERY_CODES)
    return found(factors.filter(pk=factor_id).first())


def own_session(person: User, session_id: int) -> UserSession:
    return found(UserSession.objects.filter(user=person, pk=session_id).first())


def person_for(operator: User, person_id: int) -> User:
    """A user whom this operator may change. Only superusers may change superusers."""
    people = User.objects.all() if operator.is_superuser else User.objects.filter(is_superuser=False)
    return found(people.filter(pk=person_id).first())


def has_still(person: User, permission: str) -> bool:
    """Permission check with the rights of this moment: the user object of a request keeps those of its beginning."""
    return User.objects.get(pk=person.pk).has_perm(permission)


def found(row: Row | None) -> Row:
    if row is None:
        raise Http404
    return row
