"""Tags of the timeline: `{% load timeline %}`. In Python, because a page needs each of them a hundred times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

register = template.Library()


@register.simple_tag
def item_links(address: str, item_ids: Iterable[str]) -> SafeString:
    """The way to each item: as stored, and to where it stands. `address` is the session's own.

    The addresses are put together by hand: reverse() for each would take a tenth of the time of a whole page.
    """
    links = []
    for item_id in item_ids:
        shown, quoted = escape(item_id), quote(item_id, safe="")
        links.append(
            f'<a class="text-secondary ms-1" href="{address}items/{quoted}/"'
            f' aria-label="Item {shown} as stored">JSON</a>\n'
            f'<a class="text-secondary ms-1" href="{address}?item={quoted}#item-{shown}"'
            f' aria-label="Link to item {shown}">#{shown}</a>'
        )
    # An id is escaped or percent-encoded; the address is one of ours.
    return mark_safe("\n".join(links))


@register.filter
def run_start(instant: datetime) -> SafeString:
    """Day and minute in UTC."""
    instant = instant.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{}</time>',
        f"{instant:%Y-%m-%dT%H:%M:%SZ}",
        f"{instant:%a} {instant.day} {instant:%b %Y, %H:%M}",
    )
