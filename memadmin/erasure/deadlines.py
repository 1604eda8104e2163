"""Due dates of requests: one calendar month, and two more if the time is extended (GDPR article 12 (3))."""

from __future__ import annotations

import calendar
from datetime import date

ANSWER_MONTHS = 1
EXTENDED_MONTHS = 3
"""Months after the receipt of a request, at most: the second if it was extended."""

REMINDERS = (50, 75, 90)
"""Percentages of the time after which reminders are sent."""


def due_date(received_on: date, months: int = ANSWER_MONTHS) -> date:
    """The day with the same number so many months later, or the last day of that month if it has no such day.

    As Regulation (EEC, Euratom) 1182/71, article 3 (2) (c), counts periods in months.
    """
    index = received_on.year * 12 + received_on.month - 1 + months
    year, month = index // 12, index % 12 + 1
    return date(year, month, min(received_on.day, calendar.monthrange(year, month)[1]))


def share_of_time(received_on: date, due_on: date, today: date) -> int:
    """Percentage of the time that is over: 0 on the day of receipt, 100 and more from the due date on."""
    whole = (due_on - received_on).days
    return max(0, (today - received_on).days * 100 // whole) if whole > 0 else 100


def reminder_due(received_on: date, due_on: date, today: date, *, reminded: int) -> int:
    """The latest percentage of REMINDERS that was reached and not reminded yet; 0 if there is none."""
    share = share_of_time(received_on, due_on, today)
    reached = [percent for percent in REMINDERS if reminded < percent <= share]
    return reached[-1] if reached else 0
