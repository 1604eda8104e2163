"""Recent readers of a subject's data, counted from the log for the subject's page."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memadmin.audit.log import event_names, types
from memadmin.audit.models import AuditActor, AuditEvent
from memadmin.audit.pages.listing import Who, who
from memadmin.counting import COUNT_CAP

MOST_SHOWN = 8


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


def reads_declared() -> list[str]:
    return event_names.reads_among(event_type.name for event_type in types.declared())
