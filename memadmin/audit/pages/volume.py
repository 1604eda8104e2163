"""Number of events by day and group, for the chart above the list."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db import connections
from django.utils.timezone import get_current_timezone_name, localdate

from memadmin.audit.log.groups import EventGroup, group_of
from memadmin.audit.pages.forms import AuditFilter
from memadmin.audit.querysets import AuditEventQuerySet
from memadmin.home.charts import Chart, Series
from memadmin.replica import alias_for_reading

DAYS = 30
"""Days shown without a filter of dates, and at most."""

MOST_COUNTED = 50_000
"""Newest events that are counted: a fraction of a second, however long the log is."""

# By number, because one event can be in two branches: with its own subject and with others.
BY_DAY = """
SELECT (at AT TIME ZONE %s)::date, type, count(DISTINCT number) FROM ({newest}) AS newest GROUP BY 1, 2
"""

COLOURS = {
    EventGroup.READING: "blue",
    EventGroup.SESSIONS: "teal",
    EventGroup.MEMORIES: "purple",
    EventGroup.ERASURE: "red",
    EventGroup.RETENTION: "orange",
    EventGroup.SIGN_IN: "green",
    EventGroup.RIGHTS: "yellow",
    EventGroup.STORES: "cyan",
    EventGroup.LOG: "secondary",
    EventGroup.SETTINGS: "pink",
}


@dataclass(frozen=True, slots=True)
class EventVolume:
    """Events by day and group. Groups without an event are left out."""

    days: tuple[date, ...]
    counts: Counter[tuple[date, EventGroup]]
    is_capped: bool = False
    """Whether only the newest MOST_COUNTED events were counted: the first day may be counted in part."""

    @property
    def groups(self) -> list[EventGroup]:
        found = {group for _, group in self.counts}
        return [group for group in EventGroup if group in found]

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def rows(self) -> list[tuple[date, list[int], int]]:
        """The days, each with the counts of the groups and their sum."""
        rows = []
        for day in self.days:
            counts = [self.counts[day, group] for group in self.groups]
            rows.append((day, counts, sum(counts)))
        return rows

    @property
    def chart(self) -> Chart:
        return Chart(
            "events-by-day",
            "Events by day",
            "Events by day and group. The numbers are in the table below.",
            "Day",
            [f"{day.day} {day:%b}" for day in self.days],
            [
                Series(
                    str(group.label).capitalize(),
                    f"ink-{COLOURS[group]}",
                    [self.counts[day, group] for day in self.days],
                )
                for group in self.groups
            ],
        )


def volume(filters: AuditFilter) -> EventVolume:
    """The events of a filter by day in the reader's time zone: of the last DAYS days up to its end. One query.

    Reads at most MOST_COUNTED events, newest first, along the indexes of the list.
    """
    last = min(filters.active.get("until") or date.max, localdate())
    first = max(filters.active.get("since") or date.min, date.fromordinal(max(last.toordinal() - DAYS + 1, 1)))
    if filters.errors or first > last:
        return EventVolume((), Counter())
    sql, parameters = newest([branch.since(first) for branch in filters.branches()])
    counts: Counter[tuple[date, EventGroup]] = Counter()
    with connections[alias_for_reading()].cursor() as cursor:
        cursor.execute(BY_DAY.format(newest=sql), [get_current_timezone_name(), *parameters])
        for day, name, count in cursor.fetchall():
            counts[day, group_of(name)] += count
    is_capped = counts.total() >= MOST_COUNTED
    if is_capped:
        first = min(day for day, _ in counts)
    days = tuple(first + timedelta(days=number) for number in range((last - first).days + 1))
    return EventVolume(days, counts, is_capped)


def newest(branches: list[AuditEventQuerySet]) -> tuple[str, tuple[Any, ...]]:
    """SQL of the newest MOST_COUNTED events of a union, and its parameters.

    Each branch has its order and a limit of its own, so that PostgreSQL merges them along their indexes and stops when
    there are enough; without these it reads and sorts all of them.
    """
    first, *others = (branch.values("at", "number", "type")[:MOST_COUNTED] for branch in branches)
    union = first.union(*others, all=True) if others else first
    return (union.order_by("-at", "-number")[:MOST_COUNTED] if others else union).query.sql_with_params()
