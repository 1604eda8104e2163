"""What django-allauth asks a project: here nobody signs up, and nobody learns who has an account."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

WRONG = "User name or password is wrong, or the account is switched off."
"""The same for a wrong password, an unknown name and somebody who left, so that it tells nothing about either."""

TOO_MANY = "Too many tries that failed. After 5 minutes the next one counts."

UNKNOWN_ADDRESS = "0.0.0.0"


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]  # allauth has no types
    error_messages: ClassVar[dict[str, str]] = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": WRONG,
        "email_password_mismatch": WRONG,
        "too_many_login_attempts": TOO_MANY,
        "incorrect_password": "That is not your password.",
        "incorrect_code": "That code is wrong, or was used already.",
        "rate_limited": TOO_MANY,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def authenticate(self, request: HttpRequest, **credentials: Any) -> User | None:
        """Who has these credentials. Somebody who was switched off is answered like somebody who never was."""
        user: User | None = super().authenticate(request, **credentials)
        return user if user and user.is_active else None

    def respond_user_inactive(self, request: HttpRequest, user: User) -> HttpResponse:
        return redirect(settings.LOGIN_URL)

    def add_message(self, request: HttpRequest, level: int, *args: Any, **kwargs: Any) -> None:
        """Nothing: the page that follows says what happened."""

    def get_client_ip(self, request: HttpRequest) -> str:
        try:
            return str(super().get_client_ip(request))
        except PermissionDenied:
            return UNKNOWN_ADDRESS  # a socket file has no address

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """What failed tries are counted by: name and address.

        By name alone, anybody could keep a named person out by failing in their name.
        """
        name = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{self.get_client_ip(request)} {name}"
