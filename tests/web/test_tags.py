"""The tags of every page."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.messages import SUCCESS
from django.contrib.messages.storage.base import Message
from django.template import engines
from django.template.loader import render_to_string
from django.utils.timezone import now

from memadmin.counting import capped, counted
from memadmin.web.templatetags.memadmin import ago, badge, clock, distance, icon, tagx

NOON = datetime(2026, 11, 19, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before_noon", "words"),
    [
        (timedelta(seconds=20), "just now"),
        (timedelta(minutes=1), "1 min ago"),
        (timedelta(minutes=59, seconds=29), "59 min ago"),
        (timedelta(minutes=59, seconds=31), "1 h ago"),
        (timedelta(hours=13), "13 h ago"),
        (timedelta(hours=24), "yesterday"),
        (timedelta(hours=37), "2 days ago"),
        (timedelta(days=9, hours=11), "9 days ago"),
        (timedelta(days=9, hours=13), "9 Nov"),
        (timedelta(days=400), "15 Oct 2025"),
        (-timedelta(seconds=20), "just now"),
        (-timedelta(minutes=5), "in 5 min"),
        (-timedelta(hours=30), "tomorrow"),
        (-timedelta(days=3), "in 3 days"),
        (-timedelta(days=20), "9 Dec"),
        (-timedelta(days=60), "18 Jan 2027"),
    ],
)
def test_time_is_relative_up_to_nine_days(before_noon: timedelta, words: str) -> None:
    assert distance(NOON - before_noon, NOON) == words


def test_exact_instant_is_there_in_utc_wherever_it_came_from() -> None:
    kathmandu = timezone(timedelta(hours=5, minutes=45))
    shown = ago(datetime(2025, 3, 2, 1, 30, tzinfo=kathmandu))
    assert shown == '<time datetime="2025-03-01T19:45:00Z" title="1 Mar 2025, 19:45:00 UTC" data-ago>1 Mar 2025</time>'


@pytest.mark.parametrize("nothing", [None, "", "<script>"])
def test_no_instant_is_a_dash(nothing: object) -> None:
    assert ago(nothing) == "\N{EN DASH}"  # type: ignore[arg-type]


def test_now_is_now() -> None:
    assert "just now" in ago(now())


def test_words_of_a_badge_are_text_and_hide_nothing() -> None:
    assert "&lt;b&gt;" in badge("green", "check", "<b>")
    assert "&lt;b&gt;" in tagx("database", "<b>")
    assert r"\u202e" in badge("green", "check", "\u202eb")
    assert r"\u200b" in tagx("database", "a\u200bb")
    assert icon("x", "ink") == '<svg class="icon ink" aria-hidden="true"><use href="/static/icons.svg#x"/></svg>'


def test_a_message_hides_nothing() -> None:
    message = Message(SUCCESS, "Label “\u202eb<i>” is off.")
    assert r"Label “\u202eb&lt;i&gt;” is off." in render_to_string("_toasts.html", {"messages": [message]})


@pytest.mark.parametrize(("count", "shown"), [(0, "0"), (1000, "1,000"), (1001, "1,000+")])
def test_count_stops_at_its_cap(count: int, shown: str) -> None:
    assert capped(count) == shown


@pytest.mark.parametrize(
    ("count", "nouns", "words"),
    [
        (0, "items", "0 items"),
        (1, "items", "1 item"),
        (1, "memories", "1 memory"),
        (2_000, "memories", "2,000 memories"),
        (1, "locked sessions", "1 locked session"),
    ],
)
def test_a_number_has_its_noun(count: int, nouns: str, words: str) -> None:
    assert counted(count, nouns) == words


def test_stored_json_in_a_template() -> None:
    template = engines["django"].from_string("{% load memadmin %}<pre>{{ value|json_pretty }}</pre>{{ text|visible }}")
    shown = template.render({"value": {"<a>": 1}, "text": "<b>\u202e"})
    assert (
        shown
        == '<pre>{\n  <span class="j-key">&quot;&lt;a&gt;&quot;</span>: <span class="j-num">1</span>\n}</pre>'
        + ("&lt;b&gt;\\u202e")
    )


def test_every_symbol_that_a_template_names_is_drawn() -> None:
    sources = [
        path.read_text()
        for folder in (
            settings.ASSETS_DIR / "templates",
            Path(settings.PACKAGE_DIR),
            settings.CHECKOUT_DIR / "sessions_app",
        )
        for path in folder.rglob("*")
        if path.suffix in (".html", ".py")
    ]
    named = set(re.findall(r'(?:icon|tagx)[ (]"([a-z0-9-]+)"', "\n".join(sources)))
    named |= set(re.findall(r'badge[ (]"[a-z]+",? "([a-z0-9-]+)"', "\n".join(sources)))
    drawn = set(re.findall(r'<symbol id="([a-z0-9-]+)"', (settings.ASSETS_DIR / "static" / "icons.svg").read_text()))
    assert named, "no template names a symbol: the pattern is wrong"
    assert named <= drawn


def test_time_of_day_carries_its_exact_instant() -> None:
    riga = timezone(timedelta(hours=2))
    assert clock(datetime(2026, 11, 19, 14, 2, 11, tzinfo=riga)) == (
        '<time datetime="2026-11-19T12:02:11Z" title="19 Nov 2026, 12:02:11 UTC">12:02:11</time>'
    )


NAMES = ["Pilot's", "<b>", "a\u200bb"]


def test_texts_of_a_list_are_escaped_once_and_hide_nothing() -> None:
    shown = engines["django"].from_string("{% load memadmin %}{{ names|visible_list }}")
    assert shown.render({"names": NAMES}) == r"Pilot&#x27;s, &lt;b&gt;, a\u200bb"


def test_a_list_that_is_cut_is_cut_between_characters() -> None:
    shown = engines["django"].from_string("{% load memadmin %}{{ names|visible_list|truncatechars:8 }}")
    assert shown.render({"names": NAMES}) == "Pilot&#x27;s\N{HORIZONTAL ELLIPSIS}"


CHANGED_AFTER_JOIN = re.compile(r"\|join:\S*(?: \S*)?\|(?!default)\w+")


def test_joined_texts_are_not_changed_any_more() -> None:
    """`join` has escaped them: another filter would be escaped again, or cut inside a character reference."""
    templates = settings.ASSETS_DIR / "templates"
    found = [
        f"{path.relative_to(templates)}: {match[0]}"
        for path in templates.rglob("*.html")
        if "jinja2" not in path.parts
        for match in CHANGED_AFTER_JOIN.finditer(path.read_text())
    ]
    assert not found, "use visible_list of the library memadmin"


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ('{{ names|join:", "|visible }}', True),
        ('{{ names|join:" "|truncatechars:80 }}', True),
        ('{{ names|join:", " }}', False),
        ('{{ names|join:", "|default:"any" }}', False),
    ],
)
def test_a_filter_behind_join_is_found(text: str, is_wrong: bool) -> None:
    assert bool(CHANGED_AFTER_JOIN.search(text)) is is_wrong
