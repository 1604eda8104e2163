"""Adapters of django-allauth: no sign-up, and no response reveals whether an account exists."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from cryptography.fernet import InvalidToken
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from memadmin import audit
from memadmin.accounts import audit_events
from memadmin.accounts.reauth import is_confirmed_recently
from memadmin.derived_keys import derived_fernet

WRONG = "Wrong user name or password, or the account is disabled."
"""The same for a wrong password, an unknown name and a disabled account, so that it reveals none of them."""

WRONG_CODE = "The code is wrong or has already been used."

TOO_MANY = "Too many failed attempts. Try again in 5 minutes."

UNKNOWN_ADDRESS = "0.0.0.0"

PURPOSE = "memadmin second factors"
"""Purpose of the derived key that encrypts second factors."""


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    error_messages: ClassVar[dict[str, str]] = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": WRONG,
        "email_password_mismatch": WRONG,
        "too_many_login_attempts": TOO_MANY,
        "enter_current_password": "The current password is wrong.",
        "incorrect_password": "The password is wrong.",
        "incorrect_code": WRONG_CODE,
        "rate_limited": TOO_MANY,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """The user with these credentials; None for disabled and unknown users alike."""
        user: User | None = super().authenticate(request, **credentials)
        return user if user and user.is_active else None

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Counts failed attempts by name and address together.

        By name alone, as in allauth, anyone could lock out another user with failed attempts in their name.
        """
        address = self.get_client_ip(request)
        counted = {name: f"{address} {credentials[name]}" for name in ("email", "username") if name in credentials}
        try:
            super().pre_authenticate(request, **counted)
        except ValidationError:
            self.record_failure(credentials, "too_many_tries")
            raise

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        self.record_failure(credentials, "wrong_password")

    def record_failure(self, credentials: dict[str, Any], reason_code: str) -> None:
        named = User.objects.filter(username__iexact=credentials.get("username", "")).first()
        audit.record_alone(audit_events.SIGN_IN_FAILED, target=named, outcome="failed", reason_code=reason_code)

    def is_reauthentication_required(self, **kwargs: Any) -> bool:
        return not is_confirmed_recently(context.request)

    def get_reauthentication_methods(self, user: User) -> list[dict[str, str]]:
        """One page with all methods."""
        return [{"id": "confirm", "description": "Confirm it's you", "url": reverse("accounts:confirm")}]

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("accounts:account")

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect(settings.LOGIN_URL)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Adds no message: the next page reports the result."""

    def get_client_ip(self, request: HttpRequest) -> str:
        try:
            return str(super().get_client_ip(request))
        except PermissionDenied:
            return UNKNOWN_ADDRESS  # a Unix socket has no address


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Encrypts the secrets of factors: read access to the database must not be enough to generate codes."""

    error_messages: ClassVar[dict[str, str]] = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": WRONG_CODE,
        "key_gone": (
            "This second factor was encrypted with a secret key that the console no longer has. An administrator "
            "can reset it."
        ),
    }

    def encrypt(self, text: str) -> str:
        return derived_fernet(PURPOSE).encrypt(text.encode()).decode()

    def decrypt(self, encrypted_text: str) -> str:
        try:
            return derived_fernet(PURPOSE).decrypt(encrypted_text.encode()).decode()
        except InvalidToken:
            raise self.validation_error("key_gone") from None

    def get_totp_label(self, user: User) -> str:
        return user.get_username()

    def get_totp_issuer(self) -> str:
        return "memadmin"

    def generate_authenticator_name(self, user: User, type: Authenticator.Type) -> str:
        return f"Passkey {Authenticator.objects.filter(user=user, type=type).count() + 1}"
