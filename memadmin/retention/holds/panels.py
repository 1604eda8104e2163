"""Legal holds on pages of sessions and subjects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from django.contrib.auth.models import User

from memadmin.retention.holds.guard import holds_on
from memadmin.retention.models import LegalHold
from sessions_app.extensions import Panel, beside_subject, beside_timeline
from sessions_app.models import SessionRecord, Subject

VIEW, PLACE = "retention.view_hold", "retention.place_hold"


@beside_subject
def holds_on_subject(user: User, subject: Subject) -> Panel | None:
    """Holds in force on a subject, and a link to place one. Two queries."""
    return panel(user, partial(holds_on, None, subject.pk), f"subject={subject.pk}")


@beside_timeline
def holds_on_session(user: User, record: SessionRecord) -> Panel | None:
    """Holds in force on a session, and a link to place one. Two queries."""
    return panel(user, partial(holds_on, record.pk, record.subject_id, record.labels), f"session={record.pk}")


def panel(user: User, numbers: Callable[[], list[int]], query: str) -> Panel | None:
    if not user.has_perm(VIEW):
        return None
    found = numbers()
    holds = LegalHold.objects.filter(number__in=found).select_related("approval").order_by("number") if found else []
    return Panel("retention/_holds_on.html", {"holds": holds, "query": query, "may_place": user.has_perm(PLACE)})
