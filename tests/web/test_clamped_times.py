"""Times that Python cannot represent, read through Django's connection."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.utils import timezone

from memadmin.clamped_times import clamp_times_on
from memadmin.times import EARLIEST, LATEST
from memadmin.web.templatetags.memadmin import register
from tests.agents import value_of

pytestmark = pytest.mark.django_db

TOO_LATE = ("infinity", "200000-01-01", "9999-12-31")
TOO_EARLY = ("-infinity", "4000-01-01 BC", "0001-01-01")


def test_a_time_out_of_range_becomes_the_nearest_that_can_be_calculated_with() -> None:
    for texts, bound in ((TOO_LATE, LATEST), (TOO_EARLY, EARLIEST)):
        for text in texts:
            assert value_of(f"SELECT '{text}'::timestamptz") == bound, text
            assert value_of(f"SELECT '{text}'::timestamp") == bound.replace(tzinfo=None), text
            assert value_of(f"SELECT '{text}'::date") == bound.date(), text
            assert value_of(f"SELECT ARRAY['{text}'::timestamptz]") == [bound], text
    assert LATEST.astimezone() + timedelta(days=300) > LATEST


def test_an_ordinary_time_stays_and_a_connection_of_a_pool_is_prepared_again() -> None:
    clamp_times_on(connection)
    clamp_times_on(connection)
    assert value_of("SELECT '2026-01-02 03:04:05.678901Z'::timestamptz") == datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
    assert value_of("SELECT '2026-01-02'::date") == date(2026, 1, 2)
    assert value_of("SELECT NULL::timestamptz") is None


def test_a_page_says_that_a_time_cannot_be_read() -> None:
    """In the zones furthest from UTC, too."""
    names = ("ago", "clock", "day", "day_and_clock", "day_and_minute", "full_time", "weekday_and_minute")
    for name, zone in product(names, ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago")):
        with timezone.override(zone):
            for bound in (EARLIEST, LATEST, EARLIEST.astimezone(ZoneInfo("Asia/Tokyo"))):
                assert register.filters[name](bound) == "unreadable time", (name, zone)
            assert register.filters[name](EARLIEST + timedelta(days=9)) != "unreadable time", (name, zone)
