"""Company sign-in (OpenID Connect): for users created by an administrator, matched by e-mail address.

Only addresses that the provider reports as verified count. A user of the provider without an account here may sign in,
without a role, if `MEMADMIN_OIDC_DOMAINS` contains the domain.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, NoReturn

import requests
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.shortcuts import redirect, render

from memadmin import audit
from memadmin.accounts import audit_events

PROVIDER_ID = "company"


class CompanyAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]  # allauth has no types
    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """Finds the user of a provider's account that is new here, and connects the two."""
        if sociallogin.is_existing:
            if not sociallogin.user.is_active:
                refuse(request, "not_invited", person=sociallogin.user)
            if email := verified_email(sociallogin):
                note_address(sociallogin.user, email)
            return
        email = verified_email(sociallogin)
        if not email:
            refuse(request, "not_verified")
        people = list(User.objects.filter(email__iexact=email)[:2])
        if len(people) > 1:
            # Two accounts of one person, or a mistake: the match must not be guessed.
            refuse(request, "ambiguous")
        if people and people[0].is_active:
            sociallogin.connect(request, people[0])
            note_address(people[0], email)
        elif people or not is_of_our_domain(email):
            refuse(request, "not_invited", person=people[0] if people else None)

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return is_of_our_domain(verified_email(sociallogin))

    def on_authentication_error(self, request: HttpRequest, provider: Any, **details: Any) -> None:
        refuse(request, "cancelled" if str(details.get("error")) == "cancelled" else "provider")

    def get_requests_session(self) -> requests.Session:
        session: requests.Session = super().get_requests_session()
        # The addresses are the provider's own; redirects are not followed.
        session.max_redirects = 0
        return session


def verified_email(sociallogin: SocialLogin) -> str:
    """The address in lower case; empty unless the provider reports it as verified."""
    for address in sociallogin.email_addresses:
        if address.verified is True:
            return str(address.email).lower()
    return ""


@transaction.atomic
def note_address(person: User, email: str) -> None:
    """Stores the address verified by the provider, for notices, and removes it from other users."""
    EmailAddress.objects.filter(email=email).exclude(user=person).update(verified=False)
    EmailAddress.objects.filter(user=person, primary=True).exclude(email=email).update(primary=False)
    EmailAddress.objects.update_or_create(user=person, email=email, defaults={"verified": True, "primary": True})


def is_of_our_domain(email: str) -> bool:
    return email.rpartition("@")[2] in settings.OIDC_DOMAINS


def refuse(request: HttpRequest, reason: str, *, person: User | None = None) -> NoReturn:
    """Ends the sign-in with a page that contains the reason, as far as the user can act on it."""
    audit.record_alone(audit_events.SIGN_IN_FAILED, target=person, outcome="failed", reason_code=reason)
    if reason == "cancelled":
        raise ImmediateHttpResponse(redirect("accounts:login"))
    status = HTTPStatus.SERVICE_UNAVAILABLE if reason == "provider" else HTTPStatus.FORBIDDEN
    raise ImmediateHttpResponse(render(request, "accounts/company_refused.html", {"reason": reason}, status=status))
