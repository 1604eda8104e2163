"""Access to runs: roles that view all of them, and the person who requested one."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404

from memadmin.runs.kinds import kind_named
from memadmin.runs.models import Run

VIEW, CONTROL = "runs.view_run", "runs.control_run"


def may_view(user: User, run: Run) -> bool:
    """Whether the user views all runs, or requested this one and its kind shows it to its requester. No query."""
    if user.has_perm(VIEW):
        return True
    needed = kind_named(run.kind).requester_permission
    return bool(needed) and run.requested_by_id == user.pk and user.has_perm(needed)


def run_for(user: User, run_id: int) -> Run:
    """The run that this user may view. Raises Http404; for users who may not view all runs PermissionDenied instead,
    so that they do not learn which runs exist.
    """
    found = Run.objects.select_related("requested_by", "reason_by").filter(pk=run_id).first()
    if found is None or not may_view(user, found):
        if not user.has_perm(VIEW):
            raise PermissionDenied
        raise Http404("No such run.")
    return found
