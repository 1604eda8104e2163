"""When sweeps begin: once a night, at an hour in UTC."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils.timezone import now

A_DAY = timedelta(days=1)


def start_of_night() -> datetime:
    """The last instant at which a night began, in UTC."""
    today = now().replace(hour=settings.RETENTION_HOUR, minute=0, second=0, microsecond=0)
    return today if today <= now() else today - A_DAY


def next_night() -> datetime:
    """The next instant at which a night begins, in UTC: the next run begins within ten minutes of it."""
    return start_of_night() + A_DAY
