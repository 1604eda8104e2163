"""E-mails about requests and batches to the people who handle them: numbers and dates, no personal data."""

from __future__ import annotations

from memadmin.accounts.mails import mail_those_with
from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.permissions import HANDLE


def mail_handlers(about: SubjectRequest | RequestBatch, *, title: str, sentence: str) -> bool:
    """Whether the mail about a request or batch was sent, or nobody can be reached; see `mail_those_with`."""
    return mail_those_with(HANDLE, title=title, sentence=sentence, path=about.get_absolute_url())
