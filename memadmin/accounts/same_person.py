"""Four eyes: which accounts count as one person."""

from __future__ import annotations

from collections.abc import Iterable

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User


def is_same_person(one: User, other: User | None) -> bool:
    """True if two accounts are one person: equal, or with a common address (ASVS 5.0, 2.3.5).

    Two queries, or none where `emailaddress_set` was prefetched.
    """
    if other is None:
        return False
    return one.pk == other.pk or bool(addresses_of(one) & addresses_of(other))


def addresses_of(user: User) -> set[str]:
    """All e-mail addresses of this account, stated or verified, lower-cased."""
    emails: Iterable[EmailAddress] = user.emailaddress_set.all()  # type: ignore[attr-defined]  # of django-allauth
    known = {user.email, *(each.email for each in emails if each.verified)}
    return {address.casefold() for address in known if address}
