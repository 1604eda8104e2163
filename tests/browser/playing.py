"""Jobs played in a browser, with their page loads, clicks and keys counted."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Locator, Page, Request, expect

from tests.browser.looking import wait_for_keys

TABLE = Path(__file__).resolve().parents[2] / "docs" / "jobs.md"

MOST_TABS = 80

ROW = re.compile(
    r"^\| (?P<job>[^|]+) \| (?P<way>keyboard|mouse) \| (?P<loads>\d+) \| (?P<clicks>\d+) \| (?P<keys>\d+) \|"
)


@dataclass
class Played:
    """What a job took so far. A form that is sent is a load, too; what htmx fetches into a page is none."""

    page: Page
    loads: list[str] = field(default_factory=list)
    clicks: int = 0
    keys: int = 0

    def __post_init__(self) -> None:
        self.page.on("request", self.on_request)

    def on_request(self, request: Request) -> None:
        is_load = request.is_navigation_request() and request.redirected_from is None
        if is_load and request.frame == self.page.main_frame:
            self.loads.append(f"{request.method} {request.url}")

    def start(self, address: str) -> None:
        """Opens the page where the job begins; that is not counted."""
        self.page.goto(address)
        self.loads.clear()
        self.clicks = self.keys = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.clicks += 1

    def choose(self, select: Locator, label: str) -> None:
        """By mouse: one click opens the list, one takes the option."""
        select.select_option(label=label)
        self.clicks += 2

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)
            self.keys += 1

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)
        self.keys += len(text)

    def skip_to_content(self) -> None:
        """Past the navigation, by the link that is first on each page."""
        self.page.wait_for_load_state()
        wait_for_keys(self.page)
        self.press("Tab")
        expect(self.page.get_by_role("link", name="Skip to content")).to_be_focused()
        self.press("Enter")
        expect(self.page.locator("#main")).to_be_focused()

    def wait_for_htmx(self) -> None:
        """Until what htmx put into the page answers to keys: a person takes longer to read than it takes."""
        self.page.wait_for_load_state()
        wait_for_keys(self.page)
        expect(self.page.locator(".htmx-swapping, .htmx-settling, .htmx-added")).to_have_count(0)

    def tab_to(self, target: Locator) -> None:
        """Moves the focus to `target` with the Tab key alone."""
        expect(target).to_be_visible()
        for _ in range(MOST_TABS):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"{target} is not reached by {MOST_TABS} times Tab.")

    def assert_as_documented(self, job: str, way: str) -> None:
        """Exactly what the table in the documentation says, so that it stays true when a job becomes shorter."""
        rows = [row for line in TABLE.read_text().splitlines() if (row := ROW.match(line))]
        (said,) = [row for row in rows if (row["job"], row["way"]) == (job, way)]
        took = (len(self.loads), self.clicks, self.keys)
        expected = tuple(int(said[name]) for name in ("loads", "clicks", "keys"))
        assert took == expected, (job, way, took, expected, self.loads)
