"""Counts per day of tables with millions of rows, kept in a small table by a job.

A page must not count a month of sessions, events or recalls: that would read every entry of an index. A package
registers how one day of its series is counted, as a range of an index on the time. The job counts today again each
time, and every other day once more an hour after its end, when transactions that began in it have ended. Erasures and
retention change no day that is over: the chart says what happened then. Rows that arrive late, such as the sessions of
a store that is connected today, are found by one more count each night.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django.db import connection, transaction
from django.utils.timezone import now

from memadmin.home.models import CountedDay, DayCount

logger = logging.getLogger(__name__)

DAYS_SHOWN = 30
"""Days of a chart, and days counted when a series is new."""

SETTLED_AFTER = timedelta(hours=1)
"""Time after the end of a day from which its count stays."""

KEPT = timedelta(days=400)
"""Older counts are deleted."""

CountDay = Callable[[datetime, datetime], Mapping[str, int]]
"""Counts one day by part: the rows from the first instant up to, but without, the second."""

LATE_ROWS_EVERY = timedelta(days=1)

_series: dict[str, CountDay] = {}
_with_late_rows: set[str] = set()


def counts_days_of(series: str, *, has_late_rows: bool = False) -> Callable[[CountDay], CountDay]:
    """Registers the function that counts one day of a series. `has_late_rows` if rows of past days can still arrive."""

    def register(count_day: CountDay) -> CountDay:
        _series[series] = count_day
        if has_late_rows:
            _with_late_rows.add(series)
        return count_day

    return register


def count_days(at: datetime | None = None) -> int:
    """Counts the days that are not settled, of every series, and returns their number. Each is a transaction; a series
    that cannot be counted stops no other one.
    """
    at = at or now()
    counted = 0
    for series, count_day in _series.items():
        try:
            for day, last_counted_at in days_to_count(series, at):
                begin, end = midnight(day), midnight(day) + timedelta(days=1)
                is_settled = last_counted_at is not None and last_counted_at >= end + SETTLED_AFTER
                save_day(series, day, count_day(begin, end), at, only_more=is_settled)
                counted += 1
        # Whatever breaks one series: the charts of the others go on.
        except Exception:
            logger.exception("the days of %s were not counted", series)
    DayCount.objects.filter(day__lt=at.date() - KEPT).delete()
    CountedDay.objects.filter(day__lt=at.date() - KEPT).delete()
    return counted


def days_to_count(series: str, at: datetime) -> list[tuple[date, datetime | None]]:
    """Days of the series that must be counted, oldest first, each with the time of its last count. One query."""
    last = dict(CountedDay.objects.filter(series=series).values_list("day", "counted_at"))
    again_before = at - LATE_ROWS_EVERY if series in _with_late_rows else None
    return [
        (day, last.get(day))
        for day in last_days(DAYS_SHOWN, at.date())
        if day not in last
        or last[day] < midnight(day) + timedelta(days=1) + SETTLED_AFTER
        or (again_before is not None and last[day] < again_before)
    ]


@transaction.atomic
def save_day(series: str, day: date, counts: Mapping[str, int], at: datetime, *, only_more: bool) -> None:
    """Saves the counts of a day; with `only_more` a count that has become smaller stays."""
    rows = DayCount.objects.filter(series=series, day=day)
    if only_more:
        before = dict(rows.values_list("part", "count"))
        counts = {part: count for part, count in counts.items() if count > before.get(part, 0)}
    else:
        rows.exclude(part__in=counts).delete()
    DayCount.objects.bulk_create(
        [DayCount(series=series, day=day, part=part, count=count) for part, count in counts.items()],
        update_conflicts=True,
        unique_fields=["series", "day", "part"],
        update_fields=["count"],
    )
    CountedDay.objects.bulk_create(
        [CountedDay(series=series, day=day, counted_at=at)],
        update_conflicts=True,
        unique_fields=["series", "day"],
        update_fields=["counted_at"],
    )


# In the order of days, so that two of them cannot wait for each other. Django's upsert replaces values, and cannot add.
ADD = """
INSERT INTO home_daycount (series, part, day, count)
SELECT %s, %s, added.day, added.count FROM unnest(%s::date[], %s::bigint[]) AS added (day, count) ORDER BY added.day
ON CONFLICT (series, day, part) DO UPDATE SET count = home_daycount.count + EXCLUDED.count
"""


def add_to_days(series: str, part: str, counts: Mapping[date, int]) -> None:
    """Adds to the counts of days, in the caller's transaction: for rows that somebody reads anyway, and that no index
    could count. One query.
    """
    oldest = now().date() - KEPT
    kept = {day: count for day, count in counts.items() if day >= oldest}
    with connection.cursor() as cursor:
        cursor.execute(ADD, [series, part, list(kept), list(kept.values())])


@dataclass(frozen=True, slots=True)
class DaySeries:
    """Counts of a series in the last days, oldest first; a part without a count on a day has 0 there."""

    days: list[date]
    parts: Mapping[str, list[int]]

    def of(self, *parts: str) -> list[int]:
        """The counts of these parts together, a number for each day."""
        several = [self.parts[part] for part in parts if part in self.parts]
        return [sum(counts) for counts in zip(*several, strict=True)] if several else [0] * len(self.days)

    @property
    def total(self) -> list[int]:
        """The counts of all parts together, a number for each day."""
        return self.of(*self.parts)

    @property
    def largest_parts(self) -> list[str]:
        """The parts, the one with the largest sum first."""
        return sorted(self.parts, key=lambda part: (-sum(self.parts[part]), part))


def last_days(count: int, today: date) -> list[date]:
    """The last days with today, oldest first."""
    return [today - timedelta(days=ago) for ago in reversed(range(count))]


def midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def series_of(*names: str, days: int = DAYS_SHOWN) -> dict[str, DaySeries]:
    """The last days of several series, by name. One query of days x parts rows."""
    shown = last_days(days, now().date())
    rows = DayCount.objects.filter(series__in=names, day__gte=shown[0], day__lte=shown[-1])
    return {name: grouped(shown, rows_of) for name, rows_of in split(names, rows).items()}


def split(names: Iterable[str], rows: Iterable[DayCount]) -> dict[str, list[DayCount]]:
    found: dict[str, list[DayCount]] = {name: [] for name in names}
    for row in rows:
        found[row.series].append(row)
    return found


def grouped(days: list[date], rows: Iterable[DayCount]) -> DaySeries:
    position = {day: number for number, day in enumerate(days)}
    parts = defaultdict[str, list[int]](lambda: [0] * len(days))
    for row in rows:
        parts[row.part][position[row.day]] = row.count
    return DaySeries(days, dict(parts))
