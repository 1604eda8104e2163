"""Times in the forms in which stores keep them, as aware UTC; None for what is in no reader's calendar. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

# A year from either end of what Python represents, so that a time zone or a day more does not overflow.
EARLIEST, LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)

ZONES_SPAN = timedelta(hours=26)
"""Largest difference of two zones: a time that is further off is none of now in another zone."""


def in_utc(time: datetime, zone: tzinfo = UTC) -> datetime | None:
    """`zone` is that of a time without one."""
    try:
        time = (time if time.tzinfo else time.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return time if EARLIEST <= time <= LATEST else None


def of_text(stored: object, zone: tzinfo = UTC) -> datetime | None:
    """The time in a text in ISO 8601, as databases write it, too."""
    try:
        return in_utc(datetime.fromisoformat(str(stored)), zone)
    except ValueError:
        return None


def of_seconds(stored: object) -> datetime | None:
    """The time of seconds since 1970, a number or its text."""
    try:
        # Not `true`, which would be a second after 1970 began.
        return in_utc(datetime.fromtimestamp(float(stored if isinstance(stored, bytes) else str(stored)), UTC))
    except (ValueError, OverflowError, OSError):
        return None
