"""Tags and filters of every page: `{% load memadmin %}`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django import template
from django.template import engines
from django.template.defaultfilters import filesizeformat, stringfilter
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from memadmin import __version__
from memadmin.counting import capped, noun_for
from memadmin.times import EARLIEST, LATEST
from memadmin.web import safe_text
from memadmin.web.addresses import at_item
from memadmin.web.help.texts import area_at, term_named
from memadmin.web.markdown import render as render_markdown
from memadmin.web.navigation import Section, sections_for

register = template.Library()
register.filter("bytes", filesizeformat)
register.filter(capped)
register.filter("counted_as", noun_for)
register.filter(at_item)

RELATIVE_DAYS = 9

UNREADABLE_TIME = "unreadable time"
"""Of a stored time that Python cannot represent; it was read as EARLIEST or LATEST."""


@register.simple_tag
@lru_cache(1_000)  # a page has up to a hundred and more
def icon(name: str, classes: str = "") -> SafeString:
    """A decorative symbol of icons.svg: `{% icon "database" %}`, `{% icon "alert-triangle" "ink ink-orange" %}`."""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="{}#{}"/></svg>',
        f" {classes}" if classes else "",
        static("icons.svg"),
        name,
    )


@register.simple_tag
def badge(colour: str, symbol: str, word: Any) -> SafeString:
    """A state, as symbol and word: `{% badge "green" "check" "healthy" %}`. The word may be untrusted."""
    return format_html('<span class="badge bg-{}-lt">{}{}</span>', colour, icon(symbol), visible(word))


@register.simple_tag
def tagx(symbol: str, word: Any) -> SafeString:
    """A description, such as a store or a label: `{% tagx "database" store.name %}`. The text may be untrusted."""
    return format_html('<span class="tagx">{}{}</span>', icon(symbol), visible(word))


@register.filter
def ago(instant: datetime | None) -> SafeString | str:
    """Time since an instant, up to nine days; then the day. The exact instant in UTC is in `datetime` and `title`.

    static/app.js renews it while the page is open, as long as it says minutes or hours.
    """
    if not isinstance(instant, datetime):
        return "\N{EN DASH}"
    return time_element(instant, distance(timezone.localtime(instant), timezone.localtime()), is_renewed=True)


@register.filter
def clock(instant: datetime) -> SafeString:
    """The time of day, for lists whose day is known; the exact instant in UTC is in `datetime` and `title`."""
    return time_element(instant, f"{timezone.localtime(instant):%H:%M:%S}")


@register.filter
def day_and_clock(instant: datetime) -> SafeString:
    """The day and the time of day, for lists in which every second counts."""
    local = timezone.localtime(instant)
    year = "" if local.year == timezone.localtime().year else f" {local.year}"
    return time_element(instant, f"{local.day} {local:%b}{year} {local:%H:%M:%S}")


@register.filter
def weekday_and_minute(instant: datetime) -> SafeString:
    """Weekday, day and minute: "Tue 17 Nov 2026, 14:02"."""
    local = timezone.localtime(instant)
    return time_element(instant, f"{local:%a} {local.day} {local:%b %Y, %H:%M}")


@register.filter
def day_and_minute(instant: datetime) -> str:
    """The day and the minute: "17 Nov 14:02"."""
    local = timezone.localtime(instant)
    return UNREADABLE_TIME if instant in (EARLIEST, LATEST) else f"{local.day} {local:%b %H:%M}"


@register.filter
def full_time(instant: datetime) -> SafeString:
    """The instant written out, to the millisecond: "Thursday 19 November 2026, 08:51:02.417 UTC"."""
    local = timezone.localtime(instant)
    shown = f"{local:%A} {local.day} {local:%B %Y, %H:%M:%S}.{local.microsecond // 1000:03} {zone(instant)}"
    return time_element(instant, shown)


@register.filter
def day(instant: datetime) -> str:
    """The day: "17 Nov 2026"."""
    local = timezone.localtime(instant)
    return UNREADABLE_TIME if instant in (EARLIEST, LATEST) else f"{local.day} {local:%b %Y}"


@register.filter
def zone(instant: datetime) -> str:
    """Short name of the reader's time zone at that instant: "UTC", "CET", "+0530" where a zone has no other."""
    return timezone.localtime(instant).strftime("%Z")


def time_element(instant: datetime, shown: str, *, is_renewed: bool = False) -> SafeString:
    instant = instant.astimezone(UTC)
    if instant in (EARLIEST, LATEST):
        return SafeString(UNREADABLE_TIME)
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>',
        f"{instant:%Y-%m-%dT%H:%M:%SZ}",
        f"{instant.day} {instant:%b %Y, %H:%M:%S} UTC",
        " data-ago" if is_renewed else "",
        shown,
    )


def distance(instant: datetime, now: datetime) -> str:
    """`instant` as seen from `now`: "12 min ago", "yesterday", "in 3 h", "17 Nov", "2 Mar 2025"."""
    minutes = round(abs((now - instant).total_seconds()) / 60)
    days = (now.date() - instant.date()).days
    if minutes < 1:
        return "just now"
    if minutes < 24 * 60:
        length = f"{minutes} min" if minutes < 60 else f"{minutes // 60} h"
        return f"{length} ago" if instant < now else f"in {length}"
    if abs(days) <= RELATIVE_DAYS:
        return {1: "yesterday", -1: "tomorrow"}.get(days) or (f"{days} days ago" if days > 0 else f"in {-days} days")
    day = f"{instant.day} {instant:%b}"
    return day if instant.year == now.year else f"{day} {instant.year}"


@register.filter
def json_pretty(value: Any) -> SafeString:
    """A parsed JSON value, highlighted, for the inside of `<pre class="json" tabindex="0" aria-label="…">`."""
    return safe_text.pretty_json(value)


@register.filter
@stringfilter
def visible(text: str) -> str:
    """Untrusted text with hiding or reordering characters as escapes; autoescape does the rest."""
    return safe_text.write_out_invisible(text)


@register.filter
def visible_list(texts: Iterable[object]) -> str:
    """Untrusted texts with commas between, as `visible` shows each: `{{ memory.agents|visible_list }}`.

    Django's `join` escapes, and its result must stay as it is: `visible` behind it would be escaped again, and
    `truncatechars` would cut inside a character reference.
    """
    return ", ".join(visible(text) for text in texts)


@register.filter
def markdown(text: str, highlight: re.Pattern[str] | None = None) -> SafeString:
    """Untrusted Markdown as HTML: without links, pictures or attributes.

    Matches of a search are marked: `{{ text|markdown:highlight }}`.
    """
    return render_markdown(text, highlight or None)


@register.filter
def mark(text: str, pattern: re.Pattern[str] | None) -> SafeString:
    """Untrusted text with matches of a search marked: `{{ text|visible|mark:highlight }}`."""
    return safe_text.mark_matches(text, pattern or None)


@register.filter
def snippet(parts: Iterable[tuple[str, bool]]) -> SafeString | str:
    """Untrusted text around a match, with the match marked: `{{ match.snippet.parts|snippet }}`."""
    pieces = ((format_html("<mark>{}</mark>", visible(text)) if is_hit else visible(text),) for text, is_hit in parts)
    return format_html_join("", "{}", pieces) or "The item was removed after the search found it"


@register.simple_tag(takes_context=True)
def navigation(context: template.Context) -> list[Section]:
    """The sidebar's sections for the signed-in user: `{% navigation as sections %}`."""
    return sections_for(context["request"])


@register.simple_tag
def jinja2(name: str, **shown: Any) -> SafeString:
    """A rendered template of `web.jinja2`: `{% jinja2 "sessions/table.html" sessions=sessions %}`."""
    # Autoescape is on there.
    return mark_safe(engines["jinja2"].get_template(name).render(shown))


@register.simple_tag
def term(name: str, shown: str | None = None) -> SafeString:
    """A word of the glossary with a button that explains it: `{% term "Fence" %}`, `{% term "Store" "stores" %}`.

    Once on a page, where the word first appears. Beside a heading `shown` is empty: `{% term "Evidence" "" %}`. A word
    that is not in the glossary is an error. The browser opens and closes the explanation, without a script.
    """
    found = term_named(name)
    button = format_html(
        '<button class="term-btn" type="button" popovertarget="about-{}" aria-label="{}">{}</button>',
        found.slug,
        f"What is “{found.name}”?",
        icon("help-circle"),
    )
    note = format_html(
        '<span class="term-note" id="about-{}" popover><b>{}</b>{} '
        '<a class="inline" href="{}" hx-boost="false">More</a></span>',
        found.slug,
        found.name,
        found.text,
        found.url,
    )
    return format_html('<span class="term">{}{}</span>{}', found.name if shown is None else shown, button, note)


@register.simple_tag(takes_context=True)
def help_address(context: template.Context) -> str:
    """The help of the area that the page belongs to, or the overview of the help."""
    area = area_at(context["request"].path)
    return area.url if area else reverse("help:overview")


@register.simple_tag
def version() -> str:
    return __version__
