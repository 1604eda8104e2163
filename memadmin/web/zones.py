"""Time zone in which a person reads times: the browser's, which static/app.js tells by a cookie, or UTC by choice."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

BROWSER_ZONE = "time_zone"
"""Cookie with the name of the browser's time zone."""

CHOICE = "times"
"""Cookie with the person's choice: `UTC_CHOSEN`, or none for the browser's zone."""
UTC_CHOSEN = "utc"
CHOICE_KEPT = timedelta(days=365)

ADMIN = "/admin/"

GetResponse: TypeAlias = Callable[[HttpRequest], HttpResponseBase]


def reader_zone(get_response: GetResponse) -> GetResponse:
    """Middleware that shows times in the reader's zone. In Django admin, where times are typed, they stay in UTC."""

    def respond(request: HttpRequest) -> HttpResponseBase:
        is_utc = chose_utc(request) or request.path_info.startswith(ADMIN)
        with timezone.override(None if is_utc else browser_zone(request)):
            return get_response(request)

    return respond


def chose_utc(request: HttpRequest) -> bool:
    return request.COOKIES.get(CHOICE) == UTC_CHOSEN


def browser_zone(request: HttpRequest) -> ZoneInfo | None:
    """The zone, or None if the browser named none that this machine knows: a cookie holds whatever was sent."""
    try:
        return ZoneInfo(request.COOKIES.get(BROWSER_ZONE, ""))
    except (KeyError, ValueError, OSError):  # unknown, not a name of a zone, a directory
        return None


def begin_of(day: date) -> datetime:
    """The first instant of the day in the reader's zone; UTC in jobs and commands."""
    return datetime.combine(day, time.min, timezone.get_current_timezone())


def end_of(day: date) -> datetime:
    """The last instant of the day in the reader's zone; UTC in jobs and commands."""
    return datetime.combine(day, time.max, timezone.get_current_timezone())
