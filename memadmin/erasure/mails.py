"""E-mails about requests and batches to the people who handle them: numbers and dates, no personal data."""

from __future__ import annotations

import logging

from django.conf import settings
from django.core.mail import EmailMessage

from memadmin.accounts.notices import addresses_with
from memadmin.erasure.models import RequestBatch, SubjectRequest

logger = logging.getLogger(__name__)

HANDLE = "erasure.handle_request"


def mail_handlers(about: SubjectRequest | RequestBatch, *, title: str, sentence: str) -> bool:
    """Sends a mail to MEMADMIN_NOTICES_TO, else to all who handle requests; whether that worked.

    True, too, if nobody can be reached: the pages show the same.
    """
    people = settings.NOTICES_TO or sorted(set(addresses_with(HANDLE).values_list("email", flat=True)))
    if not settings.MAIL_SERVER or not people:
        return True
    mail = EmailMessage(
        subject=f"memadmin: {title}",
        body=f"{sentence}\n\n{settings.CONSOLE_URL}{about.get_absolute_url()}\n",
        to=people,
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except OSError as problem:  # includes all exceptions of smtplib
        # Its message may contain addresses.
        logger.warning("A mail about %s was not sent: %s", about, type(problem).__name__)
        return False
    return True
