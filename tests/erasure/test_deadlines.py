"""Due dates of requests, over month ends and leap years."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memadmin.erasure.deadlines import EXTENDED_MONTHS, due_date, reminder_due, share_of_time


@pytest.mark.parametrize(
    ("received_on", "due_on"),
    [
        (date(2026, 10, 21), date(2026, 11, 21)),
        (date(2026, 1, 31), date(2026, 2, 28)),
        (date(2028, 1, 31), date(2028, 2, 29)),
        (date(2026, 3, 31), date(2026, 4, 30)),
        (date(2026, 12, 31), date(2027, 1, 31)),
        (date(2028, 2, 29), date(2028, 3, 29)),
    ],
)
def test_due_one_calendar_month_later(received_on: date, due_on: date) -> None:
    assert due_date(received_on) == due_on


def test_an_extended_request_is_due_three_months_after_its_receipt() -> None:
    assert due_date(date(2026, 11, 30), EXTENDED_MONTHS) == date(2027, 2, 28)


@given(st.dates(date(2000, 1, 1), date(2100, 1, 1)), st.integers(1, 36))
def test_a_due_date_is_in_its_month_and_never_earlier_in_it_than_it_must(received_on: date, months: int) -> None:
    due_on = due_date(received_on, months)
    assert (due_on.year - received_on.year) * 12 + due_on.month - received_on.month == months
    assert due_on.day == received_on.day or (due_on.day < received_on.day and (due_on.day in (28, 29, 30)))


def test_reminders_after_half_three_quarters_and_nine_tenths_of_the_time() -> None:
    received_on, due_on = date(2026, 11, 1), date(2026, 12, 1)
    assert share_of_time(received_on, due_on, date(2026, 11, 1)) == 0
    sent, reminded = [], 0
    for day in range(1, 31):
        if percent := reminder_due(received_on, due_on, date(2026, 11, day), reminded=reminded):
            sent.append((day, percent))
            reminded = percent
    assert sent == [(16, 50), (24, 75), (28, 90)]


def test_a_late_reminder_is_one_and_a_clock_that_steps_back_sends_none() -> None:
    received_on, due_on = date(2026, 11, 1), date(2026, 12, 1)
    assert reminder_due(received_on, due_on, date(2026, 12, 24), reminded=0) == 90
    assert reminder_due(received_on, due_on, date(2026, 10, 1), reminded=0) == 0
    assert reminder_due(received_on, due_on, date(2026, 11, 20), reminded=90) == 0
