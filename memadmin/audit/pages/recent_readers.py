"""Recent readers of a subject's data or of one record, and their reads, from the log for its page."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memadmin.audit.log import event_names, types
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.audit.pages.listing import Who, who
from memadmin.counting import COUNT_CAP

MOST_SHOWN = 8

READS_COUNTED = 200
"""Newest reads of a record that are counted for its page."""


@dataclass(frozen=True, slots=True)
class Lookers:
    """Recent readers, the one with most reads first."""

    shown: list[tuple[Who, int]]
    others: int
    """Number of further readers."""
    is_capped: bool
    """Whether only the newest reads were counted."""


def who_looked(subjects: Sequence[uuid.UUID], *, since: datetime) -> Lookers:
    """Readers of data about any of these subjects, on its own page or in a list. Three queries.

    Above COUNT_CAP reads of either kind only the newest are counted.
    """
    reads = AuditEvent.objects.newest_first().filter(at__gte=since, type__in=reads_declared())
    either = (reads.filter(subject_ref__in=subjects), reads.concerning(subjects))
    found = [list(some.values_list("number", "actor_ref", "actor_kind")[: COUNT_CAP + 1]) for some in either]
    # A read can list a subject both as its own one and among others.
    counts = Counter((ref, kind) for _, ref, kind in {row for rows in found for row in rows[:COUNT_CAP]})
    known = AuditActor.objects.in_bulk([ref for ref, _ in counts])
    return Lookers(
        [(who(known, ref, kind), count) for (ref, kind), count in counts.most_common(MOST_SHOWN)],
        max(0, len(counts) - MOST_SHOWN),
        any(len(rows) > COUNT_CAP for rows in found),
    )


@dataclass(frozen=True, slots=True)
class RecentReader:
    """A reader of one record: number of the newest reads, and the time of the last one."""

    who: Who
    count: int
    last_at: datetime


def readers_of(record: uuid.UUID) -> list[RecentReader]:
    """The latest readers of a record on a page of its own, the last one first; at most MOST_SHOWN. Two queries, of the
    newest READS_COUNTED reads."""
    reads = AuditEvent.objects.newest_first().filter(object_ref=record, type__in=reads_declared(), outcome="succeeded")
    found = defaultdict[tuple[uuid.UUID, str], list[datetime]](list)
    for ref, kind, at in reads.values_list("actor_ref", "actor_kind", "at")[:READS_COUNTED]:
        found[ref, kind].append(at)
    known = AuditActor.objects.in_bulk([ref for ref, _ in found])
    latest = list(found.items())[:MOST_SHOWN]
    return [RecentReader(who(known, ref, kind), len(times), times[0]) for (ref, kind), times in latest]


@dataclass(frozen=True, slots=True)
class SubjectRead:
    """A read of a subject's data, and who read."""

    event: AuditEvent
    who: Who

    @property
    def meaning(self) -> str:
        """Meaning of the event's type, as a sentence."""
        declared = types.known(self.event.type)
        return declared.meaning.replace("`", "") if declared else self.event.type


def newest_reads(subjects: Sequence[uuid.UUID], *, since: datetime, limit: int) -> list[SubjectRead]:
    """The newest reads of data about any of these subjects, on its own page or in a list. Three queries."""
    reads = AuditEvent.objects.newest_first().filter(at__gte=since, type__in=reads_declared())
    either = (reads.filter(subject_ref__in=subjects), reads.concerning(subjects))
    found = {event.number: event for some in either for event in some[:limit]}
    newest = sorted(found.values(), key=lambda event: (event.at, event.number), reverse=True)[:limit]
    known = AuditActor.objects.in_bulk([event.actor_ref for event in newest])
    return [SubjectRead(event, who(known, event.actor_ref, event.actor_kind)) for event in newest]


def reads_declared() -> list[str]:
    return event_names.reads_among(event_type.name for event_type in types.declared())
