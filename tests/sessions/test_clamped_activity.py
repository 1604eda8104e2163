"""The registry has no time of activity that no calendar has: such a session would never expire, and head each list."""

from __future__ import annotations

import pytest

from memadmin.migrating import sql_text
from sessions_app.models import SessionRecord
from tests.agents import run_sql, value_of
from tests.builders import make_session

pytestmark = pytest.mark.django_db

TIMES = ("infinity", "-infinity", "200000-01-01", "4000-01-01 BC", "0001-01-01", "9999-12-31")
WRITTEN_NOW = "SELECT count(*) FROM sessions_app_sessionrecord WHERE last_activity_at = now()"
INSERT = """
INSERT INTO sessions_app_sessionrecord (store_id, session_id, last_activity_at) SELECT store_id, '{time}', '{time}'
FROM sessions_app_sessionrecord LIMIT 1
"""


def write_times() -> None:
    """Each time in a new row, and in one that is changed."""
    for time in TIMES:
        record = make_session(session_id=f"changed to {time}")
        run_sql(INSERT.format(time=time))
        run_sql(f"UPDATE sessions_app_sessionrecord SET last_activity_at = '{time}' WHERE id = '{record.pk}'")


def test_such_a_time_is_replaced_by_that_of_the_write() -> None:
    write_times()
    assert value_of(WRITTEN_NOW) == SessionRecord.objects.count() == 2 * len(TIMES)


def test_broken_variant_without_the_trigger_and_what_the_migration_makes_of_such_rows() -> None:
    run_sql("SET LOCAL session_replication_role = replica")
    write_times()
    assert value_of(WRITTEN_NOW) == 0
    run_sql("SET LOCAL session_replication_role = origin")
    run_sql(sql_text("sessions_app", "clamp_activity.sql"))
    assert value_of(WRITTEN_NOW) == 2 * len(TIMES)
