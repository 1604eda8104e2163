"""Retention on pages of sessions, memories and subjects.

Who may see policies sees which one decides, which do not, and why. Others who may open the page see the day alone,
which support tells to customers: names of policies, legal minimums and holds can reveal inquiries. What a hold keeps
looks to them like what is kept for ever: no day is set.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User

from memadmin.retention.policies.explaining import (
    MOST_COUNTED,
    Explained,
    explain_memory,
    explain_session,
    explain_subject,
)
from memories_app.extensions import beside_memory
from memories_app.models import Memory
from sessions_app.extensions import Panel, beside_subject, beside_timeline
from sessions_app.models import SessionRecord, Subject

VIEW = "retention.view_policy"


@beside_timeline
def retention_of_session(user: User, record: SessionRecord) -> Panel:
    """Why a session is still there, and when it goes. Four queries at most."""
    return panel(user, explain_session(record))


@beside_memory
def retention_of_memory(user: User, memory: Memory) -> Panel:
    """Why a memory is still there, and when it goes. Five queries at most."""
    return panel(user, [explain_memory(memory)])


@beside_subject
def retention_of_subject(user: User, subject: Subject) -> Panel | None:
    """Numbers of sessions and memories that go, are held, and stay; for those who may see policies. Seven queries."""
    if not user.has_perm(VIEW):
        return None
    shown = {"totals": explain_subject(subject), "most_counted": MOST_COUNTED}
    return Panel("retention/_explained_subject.html", shown)


def panel(user: User, explained: Sequence[Explained]) -> Panel:
    return Panel("retention/_explained.html", {"explained": explained, "may_view": user.has_perm(VIEW)})
