"""Figures in templates have the noun for one thing, too: "1 session", never "1 sessions"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"

FIGURE_AND_PLURAL = re.compile(r"\{\{ (?P<figure>[\w.]+)\|intcomma \}\}\s+(?P<noun>[a-z]+s)(?![\w{])(?!/s)")
"""A figure that is printed with separators, and a noun that is always in the plural."""

NEVER_ONE = {
    ("volume.total", "events"): "the most that are counted",
    ("newest", "sessions"): "the most that are searched",
    ("outcome.changed", "sessions"): "the sentence for several sessions",
}


def always_plural(text: str) -> list[tuple[str, str]]:
    return [(match["figure"], match["noun"]) for match in FIGURE_AND_PLURAL.finditer(text)]


def test_every_noun_after_a_figure_follows_it() -> None:
    wrong = {
        (str(path.relative_to(TEMPLATES)), *found)
        for path in TEMPLATES.rglob("*.html")
        for found in always_plural(path.read_text())
        if found not in NEVER_ONE
    }
    assert not wrong, "use pluralize, or counted_as of the library memadmin"


@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [
        ("{{ found.count|intcomma }} sessions", True),
        ("{{ found.count|intcomma }}\n  sessions, of", True),
        ("{{ found.count|intcomma }} session{{ found.count|pluralize }}", False),
        ('{{ found.count|intcomma }} {{ found.count|counted_as:"sessions" }}', False),
        ("{{ found.rate|intcomma }} rows/s", False),
    ],
)
def test_a_noun_that_is_always_plural_is_found(text: str, is_wrong: bool) -> None:
    assert bool(always_plural(text)) is is_wrong
