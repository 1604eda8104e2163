"""Access to retention runs."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.shortcuts import get_object_or_404

from memadmin.retention.sweep.starting import RUN_KIND
from memadmin.runs.models import Run


def sweep_for(user: User, number: int) -> Run:
    """A retention run, with the names that its page shows. Raises Http404: runs of other kinds have other pages."""
    runs = Run.objects.select_related("requested_by", "reason_by")
    return get_object_or_404(runs, kind=RUN_KIND, number=number)
