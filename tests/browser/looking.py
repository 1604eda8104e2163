"""Looking at a page the way people will: wide and narrow, light and dark."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from django.urls import Resolver404, resolve
from playwright.sync_api import Page, ViewportSize, expect

SYSTEM_CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
"""Debian's, rather without windows: half the time. Without either Playwright brings its own."""


PATIENCE_MILLISECONDS = 120_000
"""How long a page may take on a machine that does other things, too. What comes is not waited for any longer."""


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
BY_DAY, ON_A_PHONE = VIEWS[:2]

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


def each_view(page: Page, path: str, views: Sequence[View] = VIEWS) -> Iterator[View]:
    """Opens `path` once, and shows it in one view after the other; the last one stays."""
    open_in(page, path, views[0])
    yield views[0]
    for view in views[1:]:
        turn_to(page, view)
        yield view


def open_in(page: Page, path: str, view: View) -> None:
    """Opens `path`, and waits until it is drawn."""
    page.set_viewport_size(view.size)
    page.emulate_media(color_scheme=view.theme)
    if "#" in path:  # from elsewhere: the same page would not be loaded again
        page.goto("about:blank")
    page.goto(path)
    settle(page)


def settle(page: Page) -> None:
    """Waits until the page and the parts that it asks for are there, and drawn."""
    page.wait_for_load_state()
    expect(page.locator(ON_ITS_WAY)).to_have_count(0)
    page.evaluate(SETTLE)


def wait_until(page: Page, is_so: Callable[[], bool]) -> bool:
    """Whether it becomes so within patience: what the page tells by events may be later than what it shows."""
    until = time.monotonic() + PATIENCE_MILLISECONDS / 1000
    while not (came := is_so()) and time.monotonic() < until:
        page.evaluate("() => new Promise(requestAnimationFrame)")
    return came


def wait_for_keys(page: Page) -> None:
    """Waits until the page that a click or a key led to acts on keys at once. `Page.goto` waits for it by itself."""
    expect(page.locator("html[data-listening]")).to_be_attached()


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


ALWAYS = ["target-size", "landmark-unique", "region"]
"""Rules that count whatever axe thinks of their weight: room for a finger, and landmarks that can be told apart."""

# Runs axe, and asks it about the contrast of those texts only that look like none that it has found sound: of the same
# colour, size and weight, on the same ground. It is always asked about texts that may lie on more than their ancestors.
RUN_AXE = """async ([where, options, sound, wanted]) => {
    const known = new Set(sound), paints = new Map(), unknown = "data-looks-unknown";
    const elements = [...document.querySelectorAll("html, body, body *")];
    for (const element of elements) {
        const { backgroundColor, backgroundImage, opacity, filter, mixBlendMode } = getComputedStyle(element);
        const paint = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode].join();
        if (paint !== "rgba(0, 0, 0, 0),none,1,none,normal") paints.set(element, paint);
    }
    const lookOf = (element) => {
        const { color, fontSize, fontWeight, textShadow } = getComputedStyle(element);
        const look = [color, fontSize, fontWeight, textShadow];
        for (let under = element; under; under = under.parentElement) look.push(paints.get(under) ?? "");
        return look.filter(Boolean).join();
    };
    const boxes = [...paints.keys()].map((element) => [element, element.getBoundingClientRect()]);
    const isAlone = (element) => {
        const { left, right, top, bottom } = element.getBoundingClientRect();
        return !boxes.some(([other, box]) =>
            left < box.right && box.left < right && top < box.bottom && box.top < bottom
            && !other.contains(element) && !element.contains(other));
    };
    const hasText = (element) => element.matches("input:not([type=checkbox], [type=radio]), select, textarea")
        || [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
    // Of texts that nobody sees, or on a picture of their own, axe says nothing: they would never be known.
    const isSeen = (element) => {
        const { display, overflow, backgroundImage } = getComputedStyle(element);
        if (display === "contents") return true;
        if (backgroundImage !== "none") return false;
        const { right, bottom, width, height } = element.getBoundingClientRect();
        return element.checkVisibility({ visibilityProperty: true }) && !element.matches("option, :disabled")
            && right + scrollX > 0 && bottom + scrollY > 0 && (overflow === "visible" || (width > 1 && height > 1));
    };
    const isAsked = (element) =>
        hasText(element) && isSeen(element) && !where.exclude.some((part) => element.closest(part));
    for (const element of elements)
        element.toggleAttribute(unknown, isAsked(element) && !(known.has(lookOf(element)) && isAlone(element)));
    axe.configure({ rules: [{ id: "color-contrast", selector: `[${unknown}]` }] });
    // A rule has one impact, whatever it finds.
    const grave = ["serious", "critical"];
    const isWanted = ({ id, impact }) => grave.includes(impact) || wanted.includes(id);
    for (const rule of axe._audit.rules)
        if (rule.impact && !isWanted(rule)) options.rules[rule.id] = { enabled: false };
    for (const id of wanted) options.rules[id] = { enabled: true };
    // axe names an element when it is asked to, which takes time, and as long as it runs.
    const told = ({ node }) => `    ${node.selector}: ${node.source.slice(0, 200)}`;
    axe.addReporter("short", (results, _, done) => {
        const passed = results.find((rule) => rule.id === "color-contrast")?.passes ?? [];
        done({
            serious: results
                .filter((rule) => rule.violations.length && isWanted(rule))
                .map((rule) => [`${rule.id} (${rule.impact}): ${rule.help}`, ...rule.violations.slice(0, 5).map(told)]),
            sound: [...new Set(passed.map(({ node }) => lookOf(node.element)))],
        });
    });
    return await axe.run(where, { ...options, reporter: "short" });
}"""
_sound_looks: set[str] = set()
"""Looks of texts whose contrast axe has found sound, on whichever page: contrasts are most of its work."""


def assert_accessible(page: Page, *, with_shell: bool = True) -> None:
    """axe finds nothing serious or critical, and nothing of ALWAYS."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Axe().axe_script)
    # An address with a fragment is scrolled to it, and of a link that the top bar then covers axe sees a small rest.
    page.evaluate("window.scrollTo(0, 0)")
    where = {"exclude": [] if with_shell else SHELL}
    # Without a copy of each style sheet, which the policy would refuse: what needs one is about turning a phone.
    options = {"preload": False, "rules": {}}
    found = page.evaluate(RUN_AXE, [where, options, sorted(_sound_looks), ALWAYS])
    _sound_looks.update(found["sound"])
    assert not found["serious"], "\n".join([page.url, *itertools.chain(*found["serious"])])


_pages_judged: set[str] = set()
"""Names of pages, as `reverse` takes them, that axe has looked at in this process."""


def assert_sound(page: Page, *, with_shell: bool = False) -> None:
    """The page has room wide and on a phone, and the first time that it is seen, axe finds nothing serious by day."""
    assert_has_room(page)
    if (name := name_of_page(page)) not in _pages_judged or with_shell:
        assert_accessible(page, with_shell=with_shell)
        _pages_judged.update({name} - {""})
    turn_to(page, ON_A_PHONE)
    assert_has_room(page)


def name_of_page(page: Page) -> str:
    """Empty for an address that is none of ours."""
    try:
        return resolve(urlsplit(page.url).path).view_name
    except Resolver404:
        return ""


def assert_has_room(page: Page) -> None:
    assert_no_sideways_scroll(page)
    assert_no_scroll_by_a_few_pixels(page)
    assert_buttons_hold_their_words(page)


def assert_no_sideways_scroll(page: Page) -> None:
    width, room = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= room, f"{page.url} is {width} px wide and scrolls sideways"


def assert_no_scroll_by_a_few_pixels(page: Page) -> None:
    """Nothing scrolls inside by a few pixels: where scrollbars take space, such a part would have one for nothing.

    A part that scrolls in one direction does so in the other, too, unless its style says otherwise.
    """
    scrolling = page.evaluate(
        """[...document.querySelectorAll("body *")].flatMap((each) => {
            const { overflowX, overflowY } = getComputedStyle(each);
            const scrolls = (overflow, size, room) => /auto|scroll/.test(overflow) && size > room && size < room + 5;
            const name = `${each.localName}.${[...each.classList].join(".")}`;
            return [
                ...(scrolls(overflowY, each.scrollHeight, each.clientHeight)
                    ? [`${name} is ${each.scrollHeight} px high in ${each.clientHeight}`] : []),
                ...(scrolls(overflowX, each.scrollWidth, each.clientWidth)
                    ? [`${name} is ${each.scrollWidth} px wide in ${each.clientWidth}`] : []),
            ];
        })"""
    )
    assert not scrolling, f"{page.url} scrolls inside by a few pixels: {scrolling}"


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
