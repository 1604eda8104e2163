"""What `look` finds: faults that a page has in one size alone, in one theme, or in a part that comes later."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, Route

from tests.browser import looking
from tests.browser.conftest import ONCE, Look, in_all_views
from tests.browser.looking import VIEWS, turn_to

pytestmark = pytest.mark.release

SignIn: TypeAlias = Callable[..., User]

SOUND = """<!doctype html>
<html lang="en">
  <head><title>Sample</title><meta name="viewport" content="width=device-width"><style>{style}</style></head>
  <body><main><h1>Sample</h1>{body}</main></body>
</html>"""
NAMELESS = "<button></button>"
FAULTS = {
    "without-fault": ("", "<p>Tea</p>", None),
    "small-targets": (
        "button { display: block; width: 60px; height: 9px; margin: 0; padding: 0; border: 0; font-size: 8px }",
        "<button>Tea</button><button>Pot</button>",
        "target-size",
    ),
    "landmarks-alike": ("", "<nav><a href='#'>Tea</a></nav><nav><a href='#'>Pot</a></nav>", "landmark-unique"),
    "outside-of-landmarks": ("", "</main><p>Tea</p>", "region"),
    "nameless-button": ("", NAMELESS, "button-name"),
    "nameless-on-a-phone": ("@media (min-width: 500px) { button { display: none } }", NAMELESS, "button-name"),
    "nameless-on-a-desk": ("@media (max-width: 500px) { button { display: none } }", NAMELESS, "button-name"),
    "pale-by-day": (
        "@media (prefers-color-scheme: light) { p { color: #ccc; background: #fff } }",
        "<p>Tea</p>",
        "contrast",
    ),
    "pale-by-night": (
        "@media (prefers-color-scheme: dark) { p { color: #333; background: #000 } }",
        "<p>Tea</p>",
        "contrast",
    ),
    "too-wide-for-a-phone": ("p { width: 600px }", "<p>Tea</p>", "scrolls sideways"),
    "squeezed-word": (
        ".btn { display: inline-block; overflow: hidden } @media (max-width: 500px) { .btn { width: 2em } }",
        '<a class="btn" href="/">Switch to another</a>',
        "squeezes",
    ),
    "table-that-scrolls-down-by-a-pixel": (
        "div { overflow-x: auto } p { margin: 0 0 -1px }",
        "<div tabindex='0'><p>Tea</p></div>",
        "scrolls inside",
    ),
    "tabs-that-scroll-sideways-by-pixels-on-a-phone": (
        "div { overflow-x: auto } @media (max-width: 500px) { div { width: 100px } } p { width: 104px }",
        "<div tabindex='0'><p>Tea</p></div>",
        "scrolls inside",
    ),
    "in-a-part-that-comes-later": (
        "@media (max-width: 500px), (prefers-color-scheme: dark) { button { display: none } }",
        '<script src="/static/django_htmx/htmx-2.min.js"></script><p hx-get="/part/" hx-trigger="load">Tea</p>',
        "button-name",
    ),
}

COLOURS = """[...document.querySelectorAll("*")].map((each) => {
    const { color, backgroundColor, borderColor } = getComputedStyle(each);
    return [each.tagName, color, backgroundColor, borderColor];
})"""


@in_all_views
def test_faults_are_found(page: Page, look: Look) -> None:
    assert faults_found(page, look) == set(FAULTS) - {"without-fault"}


@pytest.mark.parametrize("look", [ONCE], indirect=True)
def test_faults_by_night_and_of_structure_on_a_phone_are_left_to_the_whole_look(page: Page, look: Look) -> None:
    in_other_views = {"nameless-on-a-phone", "pale-by-night"}
    assert faults_found(page, look) == set(FAULTS) - {"without-fault"} - in_other_views


def faults_found(page: Page, look: Look) -> set[str]:
    html = ""

    def answer(route: Route) -> None:
        route.fulfill(content_type="text/html", body=html if route.request.url.endswith("/sample/") else NAMELESS)

    page.route("**/sample/", answer)
    page.route("**/part/", answer)
    found = set()
    for name, (style, body, complaint) in FAULTS.items():
        html = SOUND.format(style=style, body=body)
        if said := complaint_about("/sample/", look):
            assert re.search(complaint or "^$", said), name
            found.add(name)
    return found


def complaint_about(path: str, look: Look) -> str:
    try:
        look(path)
    except AssertionError as complaint:
        return str(complaint)
    return ""


@in_all_views
def test_fault_of_the_shell_is_found_where_it_is_looked_at(page: Page, look: Look) -> None:
    html = SOUND.format(style="", body=f'</main><header class="topbar">{NAMELESS}</header><div>')
    page.route("**/sample/", lambda route: route.fulfill(content_type="text/html", body=html))
    look("/sample/")
    with pytest.raises(AssertionError, match="button-name"):
        look("/sample/", with_shell=True)


TEXTS = "p { color: #767676 } b { color: #888; font-size: 20px } i { position: absolute; inset: 0; z-index: -1 }"
UNLIKE_THEM = {
    "colour": "p { color: #777 }",
    "size": "b { font-size: 14px }",
    "weight": "b { font-weight: 400 }",
    "ground": "main { background: #eee }",
    "opacity": "p { opacity: 0.7 }",
    "moved under them": "i { background: #eee }",
}


@in_all_views
def test_text_is_excused_by_no_other_that_looks_otherwise(page: Page, look: Look) -> None:
    """Of texts that look the same axe is asked about the first page's."""
    style = TEXTS

    def answer(route: Route) -> None:
        body = SOUND.format(style=style, body="<p>Tea <b>Pot</b></p><i></i>")
        route.fulfill(content_type="text/html", body=body)

    page.route("**/sample/", answer)
    look("/sample/")
    for name, difference in UNLIKE_THEM.items():
        style = TEXTS + difference
        assert "contrast" in complaint_about("/sample/", look), name


def test_page_of_ours_is_judged_once(page: Page, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = list[str]()
    monkeypatch.setattr(looking, "_pages_judged", set())
    monkeypatch.setattr(looking, "assert_accessible", lambda page, **_: judged.append(page.url))
    sign_in("support")
    page.route("**/sample/", lambda route: route.fulfill(content_type="text/html", body="<p>Tea</p>"))
    once = Look(page, is_whole=False, folder=None)
    for path in ("/sessions/", "/sessions/?days=30", "/subjects/", "/sample/", "/sample/"):
        once(path)
    assert [urlsplit(url).path for url in judged] == ["/sessions/", "/subjects/", "/sample/", "/sample/"]


def test_page_that_changes_its_theme_is_coloured_as_if_it_were_loaded_with_it(page: Page, sign_in: SignIn) -> None:
    sign_in("support", "administrator")
    by_day, by_night = VIEWS[0], VIEWS[2]
    turn_to(page, by_day)
    page.goto("/")
    turn_to(page, by_day)
    before = page.evaluate(COLOURS)
    turn_to(page, by_night)
    after = page.evaluate(COLOURS)
    page.reload()
    turn_to(page, by_night)
    assert before != after == page.evaluate(COLOURS)
