"""Sign-in form."""

from __future__ import annotations

from allauth.account.forms import LoginForm
from django.core.validators import MaxLengthValidator


class SignInForm(LoginForm):  # type: ignore[misc]  # allauth has no types
    """User name or e-mail, and password."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].validators.append(MaxLengthValidator(254))

    def add_prefix(self, field_name: str) -> str:
        # The name that password managers and scripts expect.
        return "username" if field_name == "login" else str(field_name)
