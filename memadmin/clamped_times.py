"""Times of PostgreSQL that Python cannot represent, loaded as the nearest ones that it can calculate with.

PostgreSQL takes infinity and years from 4713 BC to 294276. psycopg raises an error for such a value, and one row
would break every page and job that reads it.
"""

from __future__ import annotations

from datetime import date, datetime

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from psycopg import DataError
from psycopg.abc import Buffer
from psycopg.types import datetime as of_psycopg

from memadmin.times import EARLIEST, LATEST

REPRESENTABLE_IN_SQL = f"{{}} BETWEEN '{EARLIEST.isoformat()}'::timestamptz AND '{LATEST.isoformat()}'::timestamptz"


def is_representable(column: str) -> Q:
    """Condition of a CHECK constraint: the time is one that Python can calculate with, or NULL."""
    return Q(**{f"{column}__range": (EARLIEST, LATEST)})


def clamp_times_on(connection: BaseDatabaseWrapper) -> None:
    """Registers loaders for the three types that contain a date."""

    class TimeWithZone(of_psycopg.TimestamptzLoader):
        # Django compares it with its own, and registers one for each cursor where they differ.
        timezone = connection.timezone

        def load(self, data: Buffer) -> datetime:
            try:
                return min(max(super().load(data).replace(tzinfo=self.timezone), EARLIEST), LATEST)
            except DataError:
                return EARLIEST if is_too_early(data) else LATEST

    adapters = connection.connection.adapters
    for name, loader in (("timestamptz", TimeWithZone), ("timestamp", TimeWithoutZone), ("date", Day)):
        adapters.register_loader(name, loader)


class TimeWithoutZone(of_psycopg.TimestampLoader):
    def load(self, data: Buffer) -> datetime:
        earliest, latest = EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None)
        try:
            return min(max(super().load(data), earliest), latest)
        except DataError:
            return earliest if is_too_early(data) else latest


class Day(of_psycopg.DateLoader):
    def load(self, data: Buffer) -> date:
        try:
            return min(max(super().load(data), EARLIEST.date()), LATEST.date())
        except DataError:
            return EARLIEST.date() if is_too_early(data) else LATEST.date()


def is_too_early(data: Buffer) -> bool:
    """Whether a time that psycopg cannot load is before all those that it can, not after them."""
    return bytes(data).startswith(b"-") or bytes(data).endswith(b"BC")
