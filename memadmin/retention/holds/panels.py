"""Legal holds on pages of sessions and subjects."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import connection

from memadmin.retention.models import LegalHold
from sessions_app.extensions import Panel, beside_subject, beside_timeline
from sessions_app.models import SessionRecord, Subject

VIEW, PLACE = "retention.view_hold", "retention.place_hold"


@beside_subject
def holds_on_subject(user: User, subject: Subject) -> Panel | None:
    """Holds in force on a subject, and a link to place one. Two queries."""
    numbers = "SELECT memadmin_holds_on(NULL, %s, '{}')"
    return panel(user, numbers, [subject.pk], f"subject={subject.pk}")


@beside_timeline
def holds_on_session(user: User, record: SessionRecord) -> Panel | None:
    """Holds in force on a session, and a link to place one. Two queries."""
    numbers = "SELECT memadmin_holds_on(%s, %s, %s)"
    return panel(user, numbers, [record.pk, record.subject_id, record.labels], f"session={record.pk}")


def panel(user: User, numbers: str, values: list[Any], query: str) -> Panel | None:
    if not user.has_perm(VIEW):
        return None
    with connection.cursor() as cursor:
        cursor.execute(numbers, values)
        found = [number for (number,) in cursor.fetchall()]
    holds = LegalHold.objects.filter(number__in=found).order_by("number") if found else []
    return Panel("retention/_holds_on.html", {"holds": holds, "query": query, "may_place": user.has_perm(PLACE)})
