"""Tags of the timeline: `{% load timeline %}`. In Python, because a page needs each of them a hundred times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

from django import template
from django.utils.safestring import SafeString, mark_safe

from memadmin.web.templatetags.memadmin import badge, clock, json_pretty, mark, markdown, visible
from sessions_app.items import StoredItem
from sessions_app.timeline import Event
from sessions_app.timeline.blocks import Block, Data, Text
from sessions_app.timeline.events import Badge

register = template.Library()


@register.simple_tag(takes_context=True)
def blocks(context: template.Context, shown: Iterable[Block], item: StoredItem) -> SafeString:
    """The pieces of an event, and the way to the item that has a long one whole: `{% blocks event.body event.item %}`.

    Text and data, which nearly all are, are written here; for the others there is a template.
    """
    # Each part is escaped, written here, or made by a template.
    return mark_safe("".join(block_html(context, block, item) for block in shown))


def block_html(context: template.Context, block: Block, item: StoredItem) -> str:
    match block:
        case Text(style="prose"):
            above, below = subheader(block.label, "mt-1"), way_to_the_rest(context, block, item)
            if context.get("as_markdown"):
                highlight = context.get("highlight")
                return (
                    f'{above}\n<div class="tl-text formed" dir="auto">{markdown(block.shown, highlight)}</div>\n{below}'
                )
            return f'{above}\n<div class="tl-text" dir="auto">{marked(context, block.shown)}</div>\n{below}'
        case Text():
            return preformatted(block.label, "Text", marked(context, block.shown)) + way_to_the_rest(
                context, block, item
            )
        case Data():
            return preformatted(block.label, "JSON", json_pretty(block.value))
    return included(context, "_block", block=block)


def preformatted(label: str, kind: str, html: SafeString) -> str:
    name = escape(label or kind)
    return f'{subheader(label, "mb-1")}\n<pre class="json" tabindex="0" aria-label="{name}">{html}</pre>\n'


def subheader(label: str, margin: str) -> str:
    return f'<div class="subheader {margin}">{escape(visible(label))}</div>' if label else ""


def marked(context: template.Context, text: str) -> SafeString:
    return mark(visible(text), context.get("highlight"))


def way_to_the_rest(context: template.Context, block: Text, item: StoredItem) -> str:
    return included(context, "_left_out", block=block, item=item) if block.left_out else ""


def included(context: template.Context, name: str, **more: object) -> SafeString:
    """As `{% include "sessions/timeline/NAME.html" with … %}`."""
    assert context.template, "a tag stands in a template"
    with context.push(**more):
        return context.template.engine.get_template(f"sessions/timeline/{name}.html").render(context)


@register.simple_tag
def badges(shown: Iterable[Badge]) -> SafeString:
    """States, in order: `{% badges event.badges %}`."""
    return mark_safe("".join(badge(one.tone, one.icon, one.word) for one in shown))


@register.simple_tag
def facts(event: Event, address: str) -> SafeString:
    """When, what else is known in a word, and the way to each item: as stored, and to where it stands.

    `{% facts event address %}`, with the address of the session. The addresses of items are put together by hand:
    reverse() for each would take a tenth of the time of a whole page.
    """
    known = [clock(event.item.written_at) if event.item.written_at else ""]
    known += [f"<bdi>{escape(visible(note))}</bdi>" for note in event.notes]
    known += [
        f'<a class="inline" href="{address}items/{quote(item.id, safe="")}/#reveal">{item.masked_count} masked</a>'
        for item in event.masked_items
    ]
    ways = "\n".join(item_link(address, item_id) for item_id in event.item_ids)
    # Times and numbers, what is escaped or percent-encoded, and an address of ours.
    return mark_safe(f'<span class="meta">{" · ".join(known)}</span>\n<span class="meta end">{ways}</span>')


def item_link(address: str, item_id: str) -> str:
    shown, quoted = escape(item_id), quote(item_id, safe="")
    return (
        f'<a class="text-secondary ms-1" href="{address}items/{quoted}/" aria-label="Item {shown} as stored">JSON</a>\n'
        f'<a class="text-secondary ms-1" href="{address}?item={quoted}#item-{shown}"'
        f' aria-label="Link to item {shown}">#{shown}</a>'
    )


@register.filter
def run_start(instant: datetime) -> SafeString:
    """Day and minute in UTC."""
    instant = instant.astimezone(UTC)
    shown = f"{instant:%a} {instant.day} {instant:%b %Y, %H:%M}"
    return mark_safe(f'<time datetime="{instant:%Y-%m-%dT%H:%M:%SZ}">{shown}</time>')
