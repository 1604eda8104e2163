"""Requests of people on the page of a subject."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.view_models import CaseView, Counts
from sessions_app.extensions import Panel, beside_subject
from sessions_app.models import Subject

VIEW, HANDLE = "erasure.view_request", "erasure.handle_request"

SHOWN = 5


@beside_subject
def requests_of_subject(user: User, subject: Subject) -> Panel | None:
    """The newest requests about a subject, and a link to open one. One query."""
    if not user.has_perm(VIEW):
        return None
    cases = SubjectRequest.objects.filter(subject=subject).select_related("run").order_by("-number")[: SHOWN + 1]
    views = [CaseView(case, user, Counts()) for case in cases]
    return Panel(
        "erasure/_of_subject.html",
        {
            "subject": subject,
            "views": views[:SHOWN],
            "has_more": len(views) > SHOWN,
            # An erased subject has no ID left: there is nothing more to ask for.
            "may_open": user.has_perm(HANDLE) and bool(subject.label),
        },
    )
