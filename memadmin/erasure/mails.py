"""E-mails about requests to the people who handle them: numbers and dates, no personal data."""

from __future__ import annotations

from memadmin.accounts.mails import mail_those_with
from memadmin.erasure.models import SubjectRequest

HANDLE = "erasure.handle_request"


def mail_handlers(request: SubjectRequest, *, title: str, sentence: str) -> bool:
    """Whether the mail about a request was sent, or nobody can be reached; see `mail_those_with`."""
    return mail_those_with(HANDLE, title=title, sentence=sentence, path=request.get_absolute_url())
