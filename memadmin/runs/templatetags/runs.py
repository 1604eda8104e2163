"""Filters for speeds and lengths of time: `{% load runs %}`."""

from __future__ import annotations

from datetime import timedelta

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma

register = template.Library()

NONE = "\N{EN DASH}"


@register.filter
def length_of_time(length: timedelta | None) -> str:
    """The two largest units: "14 s", "4 min 26 s", "3 h 2 min"; a dash for None."""
    if length is None:
        return NONE
    seconds = int(length.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


@register.filter
def days_or_less(length: timedelta | None) -> str:
    """Days from two days on, "5 days"; below that the two largest units; a dash for None."""
    return f"{length.days:,} days" if length is not None and length >= timedelta(days=2) else length_of_time(length)


@register.filter
def speed(per_second: float | None) -> str:
    """Digits that mean something: "0.4", "12", "1,150"; a dash for None."""
    if per_second is None:
        return NONE
    return f"{per_second:.1f}" if per_second < 10 else intcomma(round(per_second))
