"""Four eyes: which accounts count as one person."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User


def is_same_person(one: User, other: User | None) -> bool:
    """True if two accounts are one person: equal, or with a common address (ASVS 5.0, 2.3.5). Two queries."""
    if other is None:
        return False
    return one.pk == other.pk or bool(addresses_of(one) & addresses_of(other))


def addresses_of(user: User) -> set[str]:
    """All e-mail addresses of this account, stated or verified, lower-cased."""
    verified = EmailAddress.objects.filter(user=user, verified=True).values_list("email", flat=True)
    known = {user.email, *verified}
    return {address.casefold() for address in known if address}
