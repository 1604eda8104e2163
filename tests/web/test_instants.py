"""Instants are what Django makes of them, whoever reads them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.db import DataError, connection
from hypothesis import given, settings
from hypothesis import strategies as some

from memadmin.instants import InstantLoader

instants = some.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001  # the strategy adds the zone
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=some.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))]),
)


def loader_here() -> type:
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()")
        return type(cursor.cursor._tx.get_loader(1184, 0))


@pytest.mark.django_db
def test_connections_read_instants_this_way() -> None:
    assert loader_here() is InstantLoader


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
def test_a_connection_in_another_zone_tells_the_same_instant(zone: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('timezone', %s, true)", [zone])
        cursor.execute("SELECT '2026-11-30T12:00:00.5Z'::timestamptz")
        (found,) = cursor.fetchone()
    assert found == datetime(2026, 11, 30, 12, 0, 0, 500_000, UTC)


@pytest.mark.django_db
@pytest.mark.parametrize("text", ["infinity", "-infinity", "0044-03-15 12:00:00+00 BC", "12026-11-30 00:00:00+00"])
def test_what_python_has_no_instant_for_is_refused_as_before(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()
