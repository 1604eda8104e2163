"""Looking at a page the way people will: wide and narrow, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SYSTEM_CHROMIUM = shutil.which("chromium")
"""Debian's; without it Playwright brings its own."""


@dataclass(frozen=True, slots=True)
class View:
    width: int
    height: int
    theme: Literal["light", "dark"]

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}"


VIEWS = [View(width, height, theme) for theme in ("light", "dark") for width, height in ((1440, 900), (390, 844))]


def each_view(page: Page, path: str) -> Iterator[View]:
    """Opens `path` in one view after the other."""
    for view in VIEWS:
        page.set_viewport_size({"width": view.width, "height": view.height})
        page.emulate_media(color_scheme=view.theme)
        # From elsewhere: an address with a #fragment would not be loaded again, only turn from light to dark.
        page.goto("about:blank")
        page.goto(path)
        page.wait_for_load_state("networkidle")
        yield view


def photograph(page: Page, view: View, name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}-{view}.png"
    page.screenshot(path=target, full_page=True)
    return target


def assert_accessible(page: Page) -> None:
    """axe finds nothing serious or critical."""
    # Without a copy of each style sheet, which the policy would refuse: what needs one is about turning a phone.
    options = {"resultTypes": ["violations"], "preload": False}
    violations = Axe().run(page, options=options).response["violations"]
    serious = [
        f"{violation['id']} ({violation['impact']}): {violation['help']}\n"
        + "\n".join(
            f"    {' '.join(map(str, node['target']))}: {node['html'][:200]}" for node in violation["nodes"][:5]
        )
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    ]
    assert not serious, f"{page.url}\n" + "\n".join(serious)


def assert_no_sideways_scroll(page: Page) -> None:
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= page.evaluate("window.innerWidth"), f"{page.url} is {width} px wide and scrolls sideways"


def assert_buttons_hold_their_words(page: Page) -> None:
    """No word of a button stands outside it, where it would cover its neighbour."""
    too_narrow = page.evaluate(
        """[...document.querySelectorAll(".btn")]
               .filter((button) => button.scrollWidth > button.clientWidth)
               .map((button) => button.innerText)"""
    )
    assert not too_narrow, f"{page.url} squeezes {too_narrow}"


def name_of(path: str) -> str:
    """A file name for an address: "/sessions/?with=findings" is "sessions-with-findings"."""
    return "-".join("".join(c if c.isalnum() else " " for c in path).split())[:150] or "overview"
