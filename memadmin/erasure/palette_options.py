"""Requests and batches in the command palette."""

from __future__ import annotations

from collections.abc import Iterable

from memadmin.erasure.models import RequestBatch, SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.web.palette import ACTIONS, FINDERS, Option, OptionGroup, PaletteAction, number_in
from memadmin.web.requests import OperatorRequest


def numbered(request: OperatorRequest, text: str) -> Iterable[Option]:
    """The request or batch with this number. At most one query."""
    if not request.user.has_perm(VIEW):
        return
    if number := number_in(text, "DSR"):
        for case in SubjectRequest.objects.filter(number=number):
            detail = f"{case.get_kind_display()} · {case.get_state_display()}"
            yield Option(OptionGroup.NUMBERED, str(case), case.get_absolute_url(), "file-text-shield", detail)
    elif number := number_in(text, "B"):
        for batch in RequestBatch.objects.filter(number=number):
            yield Option(
                OptionGroup.NUMBERED, str(batch), batch.get_absolute_url(), "file-text-shield", "batch of requests"
            )


FINDERS.append(numbered)
ACTIONS.append(
    PaletteAction("New request", "erasure:request-new", "file-text-shield", (HANDLE, VIEW), is_for_subjects=True)
)
