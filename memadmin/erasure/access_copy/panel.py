"""The copy on the page of its request."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from memadmin.accounts.purposes import Purpose
from memadmin.erasure.access_copy.exclusions import NotIncluded
from memadmin.erasure.access_copy.locked import locked_counts
from memadmin.erasure.forms import HandOverForm, NoteForm
from memadmin.erasure.models import AccessCopy, SubjectRequest
from memadmin.erasure.permissions import HANDLE

State, CopyState = SubjectRequest.State, AccessCopy.State


def access_context(request: SubjectRequest, user: User) -> dict[str, Any]:
    """Context of `erasure/_access.html`: the last copy, locked sessions, and the actions of this user. Up to four
    queries.
    """
    copy = AccessCopy.objects.filter(request=request).select_related("run", "fetched_by").first()
    context: dict[str, Any] = {"copy": copy}
    if copy is not None and copy.state == CopyState.READY:
        context["without"] = [
            (place, count) for code, place, count in copy.run.exceptions if code == NotIncluded.LOCKED
        ]
    if request.state in (State.CHECKED, State.AWAITING):
        locked = locked_counts(request)
        context |= {"locked": locked, "locked_count": sum(count for _, count in locked)}
    if request.state == State.AWAITING:
        context["asked_purpose"] = dict(Purpose.choices).get(request.preview.get("purpose", ""), "")
    context |= {"read_limit": settings.READ_LIMIT, "is_approval_needed": settings.GRANT_APPROVAL}
    if not user.has_perm(HANDLE):
        return context
    context["may_build"] = request.state == State.CHECKED
    if copy is not None and copy.state == CopyState.READY:
        context["may_download"] = True
        if request.state == State.RUNNING and copy.fetched_at:
            context["hand_over_form"] = HandOverForm(auto_id="hand-over-%s")
    elif copy is not None and request.state == State.RUNNING and copy.waits_for:
        context["leave_out_form"] = NoteForm(auto_id="leave-out-%s")
    return context
