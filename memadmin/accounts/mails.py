"""E-mails that name a page and say in a sentence what awaits people there: no personal data, no content."""

from __future__ import annotations

import logging

from django.conf import settings
from django.core.mail import EmailMessage

from memadmin.accounts.notices import addresses_with

logger = logging.getLogger(__name__)


def mail_those_with(permission: str, *, title: str, sentence: str, path: str) -> bool:
    """Sends a mail about a page to MEMADMIN_NOTICES_TO, else to all who have a permission; whether that worked.

    True, too, if nobody can be reached: the pages show the same.
    """
    people = settings.NOTICES_TO or sorted(set(addresses_with(permission).values_list("email", flat=True)))
    if not settings.MAIL_SERVER or not people:
        return True
    mail = EmailMessage(
        subject=f"memadmin: {title}",
        body=f"{sentence}\n\n{settings.CONSOLE_URL}{path}\n",
        to=people,
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        mail.send()
    except OSError as problem:  # includes all exceptions of smtplib
        # Its message may contain addresses.
        logger.warning("The mail with the title “%s” was not sent: %s", title, type(problem).__name__)
        return False
    return True
