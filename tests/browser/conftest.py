"""Tests in a real browser: Debian's Chromium, else Playwright's own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Route,
    WebError,
    expect,
)
from pytest_django import DjangoDbBlocker
from pytest_django.live_server_helper import LiveServer

from tests.agents import run_sql
from tests.browser import looking
from tests.people import person

# Playwright's synchronous interface runs an event loop in this thread, and Django would refuse to query beside it.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

NO_BROWSER = (
    "NO BROWSER: the browser tests did not run. "
    "`apt-get install chromium-headless-shell` or `.venv/bin/playwright install chromium` gives them one."
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--look", type=Path, metavar="FOLDER", help="Keep screenshots of every page looked at in FOLDER.")


QUICK_SCRIPTS = "--js-flags=--no-opt --no-maglev --single-threaded-gc"
"""No script runs long enough to be worth optimising, and no test has a core to spare for it."""


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any], playwright: Playwright) -> dict[str, Any]:
    # Our pages share a process, which knows their styles and scripts already.
    browser_type_launch_args = {**browser_type_launch_args, "args": ["--renderer-process-limit=1", QUICK_SCRIPTS]}
    if looking.SYSTEM_CHROMIUM:
        return {**browser_type_launch_args, "executable_path": looking.SYSTEM_CHROMIUM}
    if Path(playwright.chromium.executable_path).exists():
        return browser_type_launch_args
    if os.environ.get("CI") == "true":
        pytest.fail(NO_BROWSER)
    pytest.skip(NO_BROWSER)


@pytest.fixture(scope="session", autouse=True)
def connections_stay(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Lets each thread of the live server keep its connection to the database, as the processes of an installation do:
    a new one has to learn every table again, which takes longer than most answers.
    """
    with pytest.MonkeyPatch.context() as patching:
        patching.setitem(connection.settings_dict, "CONN_MAX_AGE", None)
        yield
    # A thread ends with the browser's connection, which may be later than the database.
    with django_db_blocker.unblock():
        run_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture(scope="session")
def browser_context_args(browser_context_args: dict[str, Any], live_server: LiveServer) -> dict[str, Any]:
    return {**browser_context_args, "base_url": live_server.url, "timezone_id": "Asia/Tokyo"}


@pytest.fixture(scope="session")
def shared_context(
    browser: Browser, browser_context_args: dict[str, Any], live_server: LiveServer
) -> Iterator[BrowserContext]:
    """One for all tests: a new one would have to fetch and read every file again."""
    context = browser.new_context(**browser_context_args)
    # This page stays, and with it the process of all.
    context.new_page().goto("/static/app.js")
    yield context
    context.close()


@pytest.fixture
def context(shared_context: BrowserContext, live_server: LiveServer) -> Iterator[BrowserContext]:
    """The shared one, without what the test before left: pages, cookies, stored values, permissions, routes."""
    yield shared_context
    first, *others = shared_context.pages
    for page in others:
        page.close()
    shared_context.unroute_all()
    shared_context.clear_permissions()
    shared_context.clear_cookies()
    devtools = shared_context.new_cdp_session(first)
    devtools.send("Storage.clearDataForOrigin", {"origin": live_server.url, "storageTypes": "all"})
    devtools.detach()


LEFT_BEHIND = ("htmx:sendAbort", "htmx:afterRequest")
"""What htmx logs as errors when somebody leaves a page before an answer; without a reason it logs others as well."""


class Watch:
    """What went wrong in the browser during a test: errors of scripts, of the console, of the CSP; foreign requests."""

    def __init__(self, own_address: str) -> None:
        self.own_address = own_address
        self.problems: list[str] = []
        self.expected = [*LEFT_BEHIND]

    def expect(self, text: str) -> None:
        """From now on a problem that contains `text` is part of the story."""
        self.expected.append(text)

    def note(self, problem: str) -> None:
        if not any(text in problem for text in self.expected):
            self.problems.append(problem)

    def on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.note(f"console: {message.text} ({message.location['url']})")

    def on_error(self, error: WebError) -> None:
        self.note(f"script: {error.error}")

    def on_request(self, request: Request) -> None:
        if not request.url.startswith((self.own_address, "data:")):
            self.note(f"foreign request: {request.url}")


@pytest.fixture(autouse=True)
def watch(context: BrowserContext, live_server: LiveServer) -> Iterator[Watch]:
    """Fails the test when anything goes wrong in the browser that it did not `expect`."""
    context.set_default_timeout(looking.PATIENCE_MILLISECONDS)
    expect.set_options(timeout=looking.PATIENCE_MILLISECONDS)
    watch = Watch(live_server.url)
    context.on("console", watch.on_console)
    context.on("weberror", watch.on_error)
    context.on("request", watch.on_request)
    yield watch
    context.remove_listener("console", watch.on_console)
    context.remove_listener("weberror", watch.on_error)
    context.remove_listener("request", watch.on_request)
    assert not watch.problems, "\n".join(watch.problems)


@pytest.fixture
def sign_in(context: BrowserContext, live_server: LiveServer) -> Callable[..., User]:
    """Signs the browser in as somebody with the given roles: `sign_in("support")`."""

    def sign_in(*roles: str) -> User:
        user = person(*roles)
        client = Client()
        client.force_login(user)
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": live_server.url, "httpOnly": True}])
        return user

    return sign_in


# Timers of seconds wait for `letTimePass`. Clearing one clears nothing, as its number is negative: htmx looks itself
# whether its element is still there.
HOLD_TIMERS = """
const later = window.setTimeout, held = [];
window.setTimeout = (work, delay, ...given) =>
    delay < 2_000 ? later(work, delay, ...given) : -held.push(() => work(...given));
window.letTimePass = () => { for (const work of held.splice(0)) work(); };
"""


@pytest.fixture
def refresh(page: Page) -> Callable[[], None]:
    """Pages opened after it refresh themselves when it is called, and not every few seconds."""
    page.add_init_script(HOLD_TIMERS)
    return lambda: page.evaluate("letTimePass()")


@dataclass(frozen=True, slots=True)
class Look:
    """Looks at a page: no sideways scroll, and axe finds nothing serious. See `looking.assert_sound`.

    A whole look is one in all views, wide and narrow, light and dark, each with axe. With a folder it keeps screenshots
    there: `pytest tests/browser --look FOLDER`. The shell is the same around every page: axe looks at it `with_shell`.
    """

    page: Page
    is_whole: bool
    folder: Path | None

    def __call__(self, path: str, *, with_shell: bool = False) -> None:
        looking.open_in(self.page, path, looking.BY_DAY)
        self._look(looking.name_of(path), with_shell=with_shell)

    def here(self, name: str = "", *, with_shell: bool = False) -> None:
        """At the page that is open, which a form led to; `name` is the one of its screenshots."""
        looking.turn_to(self.page, looking.BY_DAY)
        self._look(name or looking.name_of(self.page.url), with_shell=with_shell)

    def _look(self, name: str, *, with_shell: bool) -> None:
        if not self.is_whole:
            return looking.assert_sound(self.page, with_shell=with_shell)
        for view in looking.VIEWS:
            looking.turn_to(self.page, view)
            if self.folder:
                looking.photograph(self.page, view, name, self.folder)
            looking.assert_has_room(self.page)
            looking.assert_accessible(self.page, with_shell=with_shell)


ONCE, WHOLE = "each-page-once", "all-views"


BEFORE_A_RELEASE = pytest.param(WHOLE, marks=pytest.mark.release)
in_all_views = pytest.mark.parametrize("look", [BEFORE_A_RELEASE], indirect=True)
"""Marks a test that does nothing but look. What else a page does, tests try that work with it, and look as they go."""


@pytest.fixture(params=[ONCE, BEFORE_A_RELEASE])
def look(request: pytest.FixtureRequest, page: Page, pytestconfig: pytest.Config) -> Look:
    folder = pytestconfig.getoption("--look", None)
    return Look(page, is_whole=request.param == WHOLE or bool(folder), folder=folder)


@contextmanager
def script_held_back(page: Page) -> Iterator[None]:
    """Pages opened within are shown without app.js, which comes at the end: the last one then listens to keys."""
    held: list[Route] = []
    page.route("**/app*.js", lambda route: held.append(route))
    yield
    for route in held:
        route.continue_()
    page.unroute("**/app*.js")
    looking.wait_for_keys(page)


def say_why(page: Page) -> None:
    """What every form of raw edits asks for."""
    page.get_by_label("Reason").select_option("correction")
