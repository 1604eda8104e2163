"""View models of recalls: the texts used at that time, and their current state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.utils.timezone import now

from memadmin.client.recalling import as_block
from memadmin.counting import COUNT_CAP
from memadmin.home.charts import Chart, Series, long_day_labels
from memories_app.models import Memory, MemoryVersion, Recall, RecalledMemory
from sessions_app.masking import Masker


@dataclass(frozen=True, slots=True)
class RecalledMemoryView:
    """A memory's rank in a recall, with the masked text used; `missing` is the reason for a missing text."""

    recalled: RecalledMemory
    statement: str
    missing: str = ""
    since: str = ""
    """Later change of the memory, if agents would not recall the same text now."""

    @property
    def memory(self) -> Memory | None:
        return self.recalled.memory


def memories_in(recall: Recall) -> list[RecalledMemoryView]:
    """Memories of a recall in prompt order. Two queries."""
    places = list(
        recall.memories.select_related("memory__subject")
        .defer("memory__embedding", "memory__words")
        .order_by("place", "pk")
    )
    of_then = MemoryVersion.objects.filter(
        memory__in=[each.memory_id for each in places if each.memory_id], number__in={each.version for each in places}
    )
    versions = {(version.memory_id, version.number): version for version in of_then}
    masker = Masker()
    return [_view_of(each, versions, masker) for each in places]


def _view_of(
    recalled: RecalledMemory, versions: Mapping[tuple[UUID, int], MemoryVersion], masker: Masker
) -> RecalledMemoryView:
    memory = recalled.memory
    if memory is None:
        return RecalledMemoryView(recalled, "", "The memory was erased with all versions. Only its rank is known.")
    version = versions.get((memory.pk, recalled.version))
    since = _since(memory, recalled)
    if version is None:
        return RecalledMemoryView(recalled, "", f"No version {recalled.version} of this memory is stored.", since)
    if version.erased_at:
        return RecalledMemoryView(recalled, "", "The text of this version was erased later.", since)
    return RecalledMemoryView(recalled, masker.text(version.statement), "", since)


def _since(memory: Memory, recalled: RecalledMemory) -> str:
    if memory.status != Memory.Status.APPROVED:
        return f"Agents no longer recall this memory: {memory.get_status_display()}."
    if memory.version != recalled.version:
        return f"The memory has changed: agents now read version {memory.version}."
    return ""


def neighbours(recall: Recall) -> dict[str, Recall | None]:
    """The recalls `before` and `after` it in its session. Two queries, or none."""
    if recall.record_id is None:
        return {"before": None, "after": None}
    others = Recall.objects.filter(record_id=recall.record_id).exclude(pk=recall.pk)
    return {
        "before": others.filter(recalled_at__lte=recall.recalled_at).order_by("-recalled_at").first(),
        "after": others.filter(recalled_at__gt=recall.recalled_at).order_by("recalled_at").first(),
    }


def prompt_text(memories: Sequence[RecalledMemoryView], subject_key: str) -> str:
    """The text of the prompt, masked; empty if a part is missing."""
    if any(each.missing for each in memories):
        return ""
    return as_block([each.statement for each in memories], subject_key)


WEEKS = 13
"""A quarter, including the current week."""

PER_WEEK = """
SELECT week, (
    SELECT count(*) FROM (
        SELECT FROM memories_app_recalledmemory
        WHERE memory_id = %(memory)s AND recalled_at >= week AND recalled_at < week + interval '7 days'
        LIMIT %(most)s
    ) AS recalled
)
FROM generate_series(%(first)s::timestamptz, %(last)s::timestamptz, interval '7 days') AS week
ORDER BY week
"""


def recall_chart(memory: Memory, at: datetime | None = None) -> Chart:
    """Recalls of a memory by week from Monday in UTC, oldest first. One query, of at most COUNT_CAP + 1 rows of an
    index for each week, which is the largest count.
    """
    last = (at or now()).replace(hour=0, minute=0, second=0, microsecond=0)
    last -= timedelta(days=last.weekday())
    first = last - timedelta(weeks=WEEKS - 1)
    with connection.cursor() as cursor:
        cursor.execute(PER_WEEK, {"memory": memory.pk, "first": first, "last": last, "most": COUNT_CAP + 1})
        rows = cursor.fetchall()
    days, counts = [begins.date() for begins, _ in rows], [count for _, count in rows]
    return Chart(
        "recalls-per-week",
        "Recalls per week",
        f"Recalls per week, last {WEEKS} weeks: {counts[-1]:,} this week, at most {max(counts):,} in a week.",
        "Week of",
        [f"{day.day} {day:%b}" for day in days],
        [Series("Recalls", "s1", counts)],
        row_labels=long_day_labels(days),
        empty=f"No run has recalled it in the last {WEEKS} weeks.",
    )
