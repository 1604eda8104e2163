"""The copy on the page of its request."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import User

from memadmin.erasure.access_copy.forms import CopyNoteForm
from memadmin.erasure.models import AccessCopy, SubjectRequest
from memadmin.runs.models import Run

HANDLE = "erasure.handle_request"


@dataclass(frozen=True, slots=True)
class CopyPanel:
    """Values of `templates/erasure/_access.html`, and which actions are possible for the viewer."""

    copy: AccessCopy | None
    run: Run | None
    may_build: bool
    may_leave_out: bool
    may_download: bool
    may_hand_over: bool
    note_form: CopyNoteForm


def access_context(request: SubjectRequest, user: User) -> dict[str, CopyPanel]:
    """Context for `erasure/_access.html`, beside `case`. One query."""
    copy = AccessCopy.objects.filter(request=request).select_related("run", "fetched_by").first()
    may_handle = user.has_perm(HANDLE)
    is_ready = copy is not None and copy.state == AccessCopy.State.READY
    is_open = request.state == SubjectRequest.State.RUNNING
    panel = CopyPanel(
        copy=copy,
        run=copy.run if copy and copy.state == AccessCopy.State.BUILDING else None,
        may_build=may_handle and request.state == SubjectRequest.State.CHECKED,
        may_leave_out=may_handle and is_open and bool(copy and copy.waits_for and not is_ready),
        may_download=may_handle and is_ready,
        may_hand_over=may_handle and is_open and bool(is_ready and copy and copy.fetched_at),
        note_form=CopyNoteForm(),
    )
    return {"access": panel}
