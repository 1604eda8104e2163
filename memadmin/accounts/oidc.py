"""Who comes in through the company's own sign-in (OpenID Connect): people whom an administrator made, by their e-mail.

An e-mail counts only when the provider says that it is verified. Whoever has an account at the provider and none here
comes in where `MEMADMIN_OIDC_DOMAINS` names their domain, without a role.
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
        """Finds the person when the provider's account is new here, and notes which it is."""
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
            # Two accounts of one person, or a mistake: nobody may guess which one is meant.
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
        # The addresses are the provider's own; where one leads elsewhere nobody follows.
        session.max_redirects = 0
        return session


def verified_email(sociallogin: SocialLogin) -> str:
    """Lower case; empty unless the provider says plainly that it is this person's."""
    for address in sociallogin.email_addresses:
        if address.verified is True:
            return str(address.email).lower()
    return ""


@transaction.atomic
def note_address(person: User, email: str) -> None:
    """Notes the address that the provider vouches for now: notices may go there. It is nobody else's any more."""
    EmailAddress.objects.filter(email=email).exclude(user=person).update(verified=False)
    EmailAddress.objects.filter(user=person, primary=True).exclude(email=email).update(primary=False)
    EmailAddress.objects.update_or_create(user=person, email=email, defaults={"verified": True, "primary": True})


def is_of_our_domain(email: str) -> bool:
    return email.rpartition("@")[2] in settings.OIDC_DOMAINS


def refuse(request: HttpRequest, reason: str, *, person: User | None = None) -> NoReturn:
    """Ends the sign-in with a page that says why, as far as the person can do something about it."""
    audit.record_alone(audit_events.SIGN_IN_FAILED, target=person, outcome="failed", reason_code=reason)
    if reason == "cancelled":
        raise ImmediateHttpResponse(redirect("accounts:login"))
    status = HTTPStatus.SERVICE_UNAVAILABLE if reason == "provider" else HTTPStatus.FORBIDDEN
    raise ImmediateHttpResponse(render(request, "accounts/company_refused.html", {"reason": reason}, status=status))
