"""Who has read of somebody lately: the log's answer, counted for the page of a person."""

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
    """Whoever read most comes first."""

    shown: list[tuple[Who, int]]
    others: int
    """How many more people there are than are shown."""
    is_capped: bool
    """Whether only the newest reads were counted."""


def who_looked(subjects: Sequence[uuid.UUID], *, since: datetime) -> Lookers:
    """Reads of what is kept of any of these subjects, in a page of its own or in a list. Three queries.

    Of more than COUNT_CAP of either kind only the newest are counted.
    """
    reads = AuditEvent.objects.newest_first().filter(at__gte=since, type__in=reads_declared())
    either = (reads.filter(subject_ref__in=subjects), reads.concerning(subjects))
    found = [list(some.values_list("number", "actor_ref", "actor_kind")[: COUNT_CAP + 1]) for some in either]
    # A read may be of a subject by itself and among others.
    counts = Counter((ref, kind) for _, ref, kind in {row for rows in found for row in rows[:COUNT_CAP]})
    known = AuditActor.objects.in_bulk([ref for ref, _ in counts])
    return Lookers(
        [(who(known, ref, kind), count) for (ref, kind), count in counts.most_common(MOST_SHOWN)],
        max(0, len(counts) - MOST_SHOWN),
        any(len(rows) > COUNT_CAP for rows in found),
    )


def reads_declared() -> list[str]:
    return event_names.reads_among(event_type.name for event_type in types.declared())
