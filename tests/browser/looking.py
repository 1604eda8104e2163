"""Looking at a page the way people will: wide and narrow, light and dark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, ViewportSize, expect

SYSTEM_CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""Debian's, rather without windows: half the time. Without either Playwright brings its own."""


Rules: TypeAlias = Literal["all", "contrast", "structure"]


@dataclass(frozen=True, slots=True)
class View:
    width: int
    height: int
    theme: Literal["light", "dark"]

    @property
    def size(self) -> ViewportSize:
        return {"width": self.width, "height": self.height}

    @property
    def is_wide(self) -> bool:
        return self.width > 1000

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}"


VIEWS = [View(width, height, theme) for theme in ("light", "dark") for width, height in ((1440, 900), (390, 844))]

# In the first frame scripts of the page learn of another size or theme, in the second what they made of it is drawn.
# A fading colour that is inherited lets others fade after it.
SETTLE = """async () => {
    const frame = () => new Promise(requestAnimationFrame);
    const fading = () => document.getAnimations().filter((each) => each instanceof CSSTransition);
    await frame();
    do {
        for (const each of fading()) each.finish();
        await frame();
    } while (fading().length);
    await document.fonts.ready;
}"""
SHELL = [".navbar-vertical", ".topbar", ".footnote"]
"""Elements around the content of every page: sidebar, top bar and footer."""
ON_ITS_WAY = ".htmx-request, .htmx-swapping, .htmx-settling"
"""Parts that a page asks for as soon as it is there."""


def each_view(page: Page, path: str) -> Iterator[View]:
    """Opens `path` once, and shows it in one view after the other; the last one stays."""
    page.set_viewport_size(VIEWS[0].size)
    page.emulate_media(color_scheme=VIEWS[0].theme)
    # From elsewhere: an address that differs in its #fragment alone would not be loaded again.
    page.goto("about:blank")
    page.goto(path)
    settle(page)
    for view in VIEWS:
        turn_to(page, view)
        yield view


def settle(page: Page) -> None:
    """Waits until the page and the parts that it asks for are there, and drawn."""
    page.wait_for_load_state()
    expect(page.locator(ON_ITS_WAY)).to_have_count(0)
    page.evaluate(SETTLE)


def turn_to(page: Page, view: View) -> None:
    """The page that is open, in this size and theme, when it is drawn and no colour fades any more."""
    page.set_viewport_size(view.size)
    page.emulate_media(color_scheme=view.theme)
    page.evaluate(SETTLE)


def photograph(page: Page, view: View, name: str, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{name}-{view}.png"
    page.screenshot(path=target, full_page=True)
    return target


def assert_accessible(page: Page, *, rules: Rules = "all", with_shell: bool = True) -> None:
    """axe finds nothing serious or critical. Contrasts are most of its work, and all that depends on the theme."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Axe().axe_script)
    # Without a copy of each style sheet, which the policy would refuse: what needs one is about turning a phone.
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False}
    if rules == "contrast":
        options["runOnly"] = ["color-contrast"]
    elif rules == "structure":
        options["rules"] = {"color-contrast": {"enabled": False}}
    where = {"exclude": [] if with_shell else SHELL}
    violations = page.evaluate("async where => (await axe.run(...where)).violations", [where, options])
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
