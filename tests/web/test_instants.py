"""Instants read from PostgreSQL are aware and in UTC, whatever zone a connection begins in.

test_clamped_times.py has those that Python cannot represent.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as some

instants = some.datetimes(
    min_value=datetime(2, 1, 2),  # noqa: DTZ001  # the strategy adds the zone
    max_value=datetime(9998, 12, 30),  # noqa: DTZ001
    timezones=some.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))]),
)


@pytest.mark.django_db
@given(instant=instants)
@settings(max_examples=50, deadline=None)
def test_an_instant_comes_back_as_it_was(instant: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [instant])
        (found,) = cursor.fetchone()
    assert (found, found.tzinfo) == (instant, UTC)


@pytest.mark.django_db
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu", "America/St_Johns"])
def test_a_connection_that_begins_in_another_zone_is_set_to_utc(zone: str) -> None:
    """As with a role or a database that has a time zone of its own (ALTER ROLE ... SET timezone)."""
    elsewhere = connection.copy()
    elsewhere.settings_dict["OPTIONS"] = {
        **elsewhere.settings_dict["OPTIONS"],
        "options": f"-c TimeZone={zone}",
    }
    try:
        with elsewhere.cursor() as cursor:
            cursor.execute(
                "SELECT reset_val, current_setting('TimeZone'), '2026-11-30T12:00:00.5Z'::timestamptz"
                " FROM pg_settings WHERE name = 'TimeZone'"
            )
            begun_in, set_to, found = cursor.fetchone()
    finally:
        elsewhere.close()
    assert (begun_in, set_to) == (zone, "UTC")
    assert found == datetime(2026, 11, 30, 12, 0, 0, 500_000, UTC)
