"""Mails as somebody gets them."""

from __future__ import annotations

from django.core.mail import EmailMessage


def words_of_mail(message: EmailMessage) -> str:
    """All of a mail but its Message-ID: a number made by chance, and the name of this machine."""
    whole = message.message()
    del whole["Message-ID"]
    return whole.as_string()
