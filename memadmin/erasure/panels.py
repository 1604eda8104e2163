"""Requests of people on the page of a subject."""

from __future__ import annotations

from django.contrib.auth.models import User

from memadmin.erasure.models import SubjectRequest
from memadmin.erasure.permissions import HANDLE, VIEW
from memadmin.erasure.view_models import CaseView, Counts
from sessions_app.extensions import Panel, SubjectMoment, SubjectTab, beside_subject, subject_moments, subject_tabs
from sessions_app.models import Subject

SHOWN = 5

IN_TAB = 50


@beside_subject
def requests_beside_subject(user: User, subject: Subject) -> Panel | None:
    """The newest requests about a subject, and a link to open one. One query."""
    return requests_about(subject, user, SHOWN, "erasure/_of_subject.html") if user.has_perm(VIEW) else None


@subject_tabs
def requests_tab(user: User, subject: Subject) -> SubjectTab | None:
    """The tab with the subject's requests. No query before it is opened."""
    if not user.has_perm(VIEW):
        return None
    return SubjectTab(
        "requests", "Requests", lambda: requests_about(subject, user, IN_TAB, "erasure/_subject_tab.html")
    )


def requests_about(subject: Subject, user: User, most: int, template: str) -> Panel:
    """The newest requests about a subject. One query."""
    cases = SubjectRequest.objects.filter(subject=subject).select_related("run").order_by("-number")[: most + 1]
    views = [CaseView(case, user, Counts()) for case in cases]
    return Panel(
        template,
        {
            "subject": subject,
            "views": views[:most],
            "has_more": len(views) > most,
            # An erased subject has no ID left: there is nothing more to ask for.
            "may_open": user.has_perm(HANDLE) and bool(subject.label),
        },
    )


@subject_moments
def request_moments(user: User, subject: Subject) -> list[SubjectMoment] | None:
    """The newest requests about a subject, received and closed. One query."""
    if not user.has_perm(VIEW):
        return None
    moments = []
    for case in SubjectRequest.objects.filter(subject=subject).order_by("-number")[:IN_TAB]:
        address, title = case.get_absolute_url(), f"Request {case}"
        kind = case.get_kind_display()
        moments.append(SubjectMoment(case.opened_at, "file-text-shield", f"{title} received", address, kind))
        if case.closed_at is not None:
            words = f"{title}: {case.get_state_display()}"
            moments.append(SubjectMoment(case.closed_at, "file-text-shield", words, address, kind))
    return moments
