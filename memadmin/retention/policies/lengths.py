"""Lengths of time of policies, in days, months or years of the calendar in UTC. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from dateutil.relativedelta import relativedelta  # type: ignore[import-untyped]
from django.db.models import TextChoices

MOST_YEARS = 100


class Unit(TextChoices):
    DAYS = "days", "days"
    MONTHS = "months", "months"
    YEARS = "years", "years"


MOST = {Unit.DAYS: 366 * MOST_YEARS, Unit.MONTHS: 12 * MOST_YEARS, Unit.YEARS: MOST_YEARS}
"""Longest length in each unit; the shortest is 1."""


@dataclass(frozen=True, slots=True)
class Length:
    """A number of days, months or years."""

    count: int
    unit: Unit

    def __str__(self) -> str:
        return f"{self.count} {self.unit[:-1] if self.count == 1 else self.unit}"

    @property
    def months(self) -> int:
        return {Unit.DAYS: 0, Unit.MONTHS: self.count, Unit.YEARS: 12 * self.count}[self.unit]

    @property
    def days(self) -> int:
        return self.count if self.unit == Unit.DAYS else 0

    def after(self, instant: datetime) -> datetime:
        """The end of the length, as PostgreSQL computes it: from 31 January one month ends on the last of February.

        The last representable instant for what would be after it.
        """
        try:
            end: datetime = instant.astimezone(UTC) + relativedelta(months=self.months, days=self.days)
        except (OverflowError, ValueError):
            end = datetime.max.replace(tzinfo=UTC)
        return end

    def is_surely_at_least(self, other: Length) -> bool:
        """Whether it is never shorter, from whatever day on. Months have 28 to 31 days where units differ."""
        if self.months and other.months:
            return self.months >= other.months
        return self.shortest >= other.longest

    @property
    def shortest(self) -> timedelta:
        return timedelta(days=self.days + 28 * self.months)

    @property
    def longest(self) -> timedelta:
        return timedelta(days=self.days + 31 * self.months)
