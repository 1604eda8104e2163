"""Parts of a subject's page: its tabs, and one line of time over sessions, memories, requests and reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from memadmin.audit.pages.recent_readers import SubjectRead, newest_reads, who_looked
from memadmin.counting import counted
from sessions_app.extensions import Panel, SubjectMoment, SubjectTab, subject_moments, subject_tabs
from sessions_app.listing import ListedSession
from sessions_app.models import Subject

SESSIONS, READS = "sessions", "reads"
"""Names of the tabs of sessions and reads; upper apps have theirs between these."""

READS_DAYS = 30

READS_SHOWN = 100

MOMENTS_SHOWN = 20


def tabs_for(user: User, subject: Subject) -> list[SubjectTab]:
    """The tabs that this user may open, that of the sessions first. No query."""
    tabs = [SubjectTab(SESSIONS, "Sessions", None), *subject_tabs.answers(user, subject)]
    if user.has_perm("audit.view_auditevent"):
        tabs.append(SubjectTab(READS, "Reads", lambda: reads_panel(subject)))
    return tabs


def reads_panel(subject: Subject) -> Panel:
    """The newest reads of the subject's data, and who read most. Six queries."""
    ids, since = subject.group_ids(), reads_since()
    shown = {
        "subject": subject,
        "reads": newest_reads(ids, since=since, limit=READS_SHOWN),
        "days": READS_DAYS,
        "limit": READS_SHOWN,
        "lookers": who_looked(ids, since=since),
    }
    return Panel("sessions/_subject_reads.html", shown)


def reads_since() -> datetime:
    return timezone.now() - timedelta(days=READS_DAYS)


def line_of_time(user: User, subject: Subject, sessions: Sequence[ListedSession]) -> list[SubjectMoment]:
    """Moments of the subject's data, newest first: the listed sessions, and what this user may see of memories,
    requests and reads. No content. Costs the queries of the upper apps, and three for the reads.
    """
    moments = [*moments_of(sessions)]
    for several in subject_moments.answers(user, subject):
        moments += several
    if user.has_perm("audit.view_auditevent"):
        log = reverse("audit:list") + f"?type=reads&subject={subject.pk}"
        moments += reads_by_day(newest_reads(subject.group_ids(), since=reads_since(), limit=READS_SHOWN), log)
    return sorted(moments, key=lambda moment: moment.at, reverse=True)[:MOMENTS_SHOWN]


def moments_of(sessions: Iterable[ListedSession]) -> list[SubjectMoment]:
    return [
        SubjectMoment(
            listed.record.last_activity_at,
            "messages",
            f"Session {listed.record.ticket or 'without a ticket'}",
            listed.record.get_absolute_url(),
            " · ".join(filter(None, [listed.record.store.name, listed.record.agent])),
        )
        for listed in sessions
    ]


def reads_by_day(reads: Iterable[SubjectRead], log: str) -> list[SubjectMoment]:
    """One moment for each reader and day, with the time of the last read."""
    counts, newest = Counter[tuple[object, ...]](), dict[tuple[object, ...], SubjectRead]()
    for read in reads:
        key = (read.who.ref, timezone.localdate(read.event.at))
        counts[key] += 1
        newest.setdefault(key, read)
    return [
        SubjectMoment(
            read.event.at,
            "user-search",
            f"Read by {read.who}",
            f"{log}&actor={read.who.ref}",
            f"{counted(counts[key], 'reads')} on this day",
        )
        for key, read in newest.items()
    ]
