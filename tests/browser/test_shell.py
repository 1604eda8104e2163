"""What every page shares, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from django.test import override_settings
from playwright.sync_api import BrowserContext, Error, Page, expect

from tests.browser.conftest import Look, Watch, script_held_back
from tests.browser.looking import assert_accessible

SignIn: TypeAlias = Callable[..., User]


@pytest.fixture(autouse=True)
def pages_to_try_it_on() -> Iterator[None]:
    with override_settings(ROOT_URLCONF="tests.browser.pages"):
        yield


@pytest.fixture
def rows(page: Page, sign_in: SignIn) -> Page:
    """The page of rows and runs, with a support person before it."""
    sign_in("support")
    page.goto("/")
    return page


def test_shell_looks_sound(look: Look, watch: Watch, sign_in: SignIn) -> None:
    """Around a page, for one who may open all, and around an error: a missing right differs from it in words alone."""
    sign_in("support", "administrator")
    look("/", with_shell=True)
    watch.expect("status of 404")
    sign_in("auditor")
    look("/no/such/page/", with_shell=True)


def test_pages_without_the_shell_look_sound(look: Look, watch: Watch, sign_in: SignIn, page: Page) -> None:
    look("/accounts/login/")
    sign_in("support")
    watch.expect("status of 50")
    page.goto("/failed/")
    expect(page.get_by_role("heading")).to_have_text("This page could not be shown")
    # But for its words the same page.
    look("/away/")
    expect(page.get_by_role("heading")).to_have_text("The database is not responding")


def test_form_that_is_too_old_is_explained(page: Page, watch: Watch) -> None:
    watch.expect("status of 403")
    page.goto("/accounts/login/")
    page.context.clear_cookies()
    page.get_by_label("User name").fill("clerk")
    page.get_by_label("Password").fill("clerk")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("This form has expired or came from another site")
    assert_accessible(page)


def test_somebody_signs_in_and_out_with_the_keyboard_alone(page: Page, watch: Watch) -> None:
    User.objects.create_user("clerk", password="clerk")
    watch.expect("status of 422")
    page.goto("/accounts/login/")
    # The browser puts the focus there when it draws, which may be after the page is loaded.
    expect(page.get_by_label("User name or e-mail")).to_be_focused()
    page.keyboard.type("clerk")
    page.keyboard.press("Tab")
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    expect(page.locator(".alert-danger")).to_contain_text("Wrong user name or password")
    expect(page.get_by_label("Password")).to_be_focused()
    page.keyboard.type("clerk")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Rows · memadmin")
    page.locator("summary", has_text="clerk").press("Enter")
    page.get_by_role("button", name="Sign out").press("Enter")
    expect(page).to_have_title("Sign in · memadmin")


def test_sidebar_shows_what_the_role_may_see(page: Page, sign_in: SignIn) -> None:
    sign_in("reviewer")
    page.goto("/")
    sections = page.get_by_role("navigation", name="Sections")
    expect(sections.get_by_role("link")).to_have_text(
        ["Overview", "Sessions", "Subjects", "Review queue", "Memories", "Recall preview"]
    )
    expect(sections.locator("[aria-current=page]")).to_have_text("Overview")


def test_keys_lead_to_content_rows_runs_and_pages(rows: Page) -> None:
    rows.keyboard.press("Tab")
    link = rows.get_by_role("link", name="Skip to content")
    expect(link).to_be_focused()
    expect(link).to_be_in_viewport()
    rows.keyboard.press("Enter")
    expect(rows.locator("#main")).to_be_focused()

    for _ in range(2):
        rows.keyboard.press("n")
    expect(rows.locator("#run-2")).to_be_focused()
    rows.keyboard.press("n")
    rows.keyboard.press("p")
    expect(rows.locator("#run-2")).to_be_focused()
    expect(rows.locator("#run-2")).to_be_in_viewport()
    rows.keyboard.press("o")
    expect(rows.get_by_label("Output of call 2")).to_be_visible()
    rows.keyboard.press("o")
    expect(rows.get_by_label("Output of call 2")).to_be_hidden()

    rows.keyboard.press("g")
    rows.keyboard.press("u")
    expect(rows).to_have_url(re.compile("/subjects/$"))
    rows.keyboard.press("j")
    rows.keyboard.press("j")
    expect(rows.get_by_role("link", name="Row 2")).to_be_focused()
    rows.keyboard.press("k")
    rows.keyboard.press("x")
    expect(rows.get_by_label("Select row 1")).to_be_checked()
    rows.keyboard.press("Enter")
    expect(rows).to_have_url(re.compile("/rows/1/$"))
    rows.go_back()
    expect(rows).to_have_url(re.compile("/subjects/$"))
    rows.keyboard.press("]")
    expect(rows).to_have_url(re.compile("/rows/99/$"))


def test_keys_before_the_script_of_the_page_are_not_lost(page: Page, sign_in: SignIn, watch: Watch) -> None:
    sign_in("support")

    def press_early(*keys: str) -> None:
        with script_held_back(page):
            page.goto("/", wait_until="commit")
            expect(page.get_by_role("link", name="Older")).to_be_visible()
            for key in keys:
                page.keyboard.press(key)

    for keys, address in (
        ("]", "/rows/99/"),
        ("gu", "/subjects/"),
        (("j", "j", "k", "Enter"), "/rows/1/"),
        ((*"/a g s", "Enter"), "/search/"),
    ):
        press_early(*keys)
        expect(page).to_have_url(re.compile(f"{address}$"))
    expect(page.locator("#main")).to_contain_text("a cup of a g s")
    press_early("j", "x", "?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_be_visible()
    expect(page.get_by_label("Select row 1")).to_be_checked()


def test_without_what_keeps_them_early_keys_are_lost(page: Page, sign_in: SignIn, watch: Watch) -> None:
    """The broken variant."""
    sign_in("support")
    nothing = "const earlyKeys = [], keepKey = () => {};"
    page.route("**/early-keys*.js", lambda route: route.fulfill(body=nothing, content_type="text/javascript"))
    with script_held_back(page):
        page.goto("/", wait_until="commit")
        expect(page.get_by_role("link", name="Older")).to_be_visible()
        page.keyboard.press("]")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Row 1")).to_be_focused()
    expect(page).to_have_title("Rows · memadmin")


def test_list_of_keys_opens_and_closes_and_keys_are_switched_off_for_good(rows: Page) -> None:
    # They do nothing while somebody types.
    rows.get_by_role("searchbox").fill("")
    rows.keyboard.type("?jx]gs")
    expect(rows.get_by_role("searchbox")).to_have_value("?jx]gs")
    expect(rows).to_have_title("Rows · memadmin")

    # Without scrolling, which goes on for a while: the page must not move below the list while axe looks at both.
    rows.get_by_role("button", name="Pour").evaluate("button => button.focus({ preventScroll: true })")
    keys = rows.get_by_role("dialog", name="Keyboard")
    rows.keyboard.press("?")
    expect(keys).to_be_in_viewport(ratio=1)
    assert_accessible(rows)
    rows.keyboard.press("Escape")
    expect(keys).to_be_hidden()

    rows.keyboard.press("?")
    rows.get_by_label("Use keyboard shortcuts in this browser").uncheck()
    rows.keyboard.press("Escape")
    rows.reload()
    rows.keyboard.press("?")
    rows.keyboard.press("j")
    expect(keys).to_be_hidden()
    expect(rows.get_by_role("link", name="Row 1")).not_to_be_focused()


def test_search_never_stands_in_an_address(rows: Page) -> None:
    rows.keyboard.press("/")
    rows.keyboard.type("marta / ? g s")
    rows.keyboard.press("Enter")
    expect(rows.locator("#main")).to_contain_text("a cup of marta / ? g s")
    assert rows.url.endswith("/search/")


def test_chosen_theme_stays_and_the_menu_opens_on_a_phone(rows: Page) -> None:
    rows.emulate_media(color_scheme="light")
    rows.get_by_role("button", name="Switch between light and dark").click()
    rows.goto("/sessions/")
    expect(rows.locator("html")).to_have_attribute("data-bs-theme", "dark")
    rows.get_by_role("button", name="Switch between light and dark").click()
    rows.reload()
    expect(rows.locator("html")).not_to_have_attribute("data-bs-theme", "dark")

    rows.set_viewport_size({"width": 390, "height": 844})
    link = rows.get_by_role("link", name="Stores")
    expect(link).to_be_hidden()
    rows.get_by_role("button", name="Menu").click()
    expect(link).to_be_visible()
    link.click()
    expect(rows).to_have_url(re.compile("/stores/$"))


def test_lost_race_is_shown_in_its_place_and_told_again_on_the_next_page(rows: Page, watch: Watch) -> None:
    watch.expect("status of 409")
    rows.get_by_role("button", name="Pour").click()
    expect(rows.locator("#cup")).to_have_text("a cup of <second>")
    rows.reload()
    expect(rows.locator("#toasts")).to_contain_text("<Poured>")
    rows.locator("#toasts").get_by_role("button", name="Close").click()
    expect(rows.locator("#toasts")).not_to_contain_text("Poured")


def test_failed_part_leaves_the_page_and_says_so_once(rows: Page, watch: Watch) -> None:
    watch.expect("500")
    with rows.expect_response("**/break/") as first:
        rows.get_by_role("button", name="Break").click()
    expect(rows.locator("#toasts")).to_contain_text("That didn't work")
    expect(rows.locator("#toasts")).to_contain_text(f"Request {first.value.headers['x-request-id']}")
    rows.get_by_role("button", name="Break").click()
    expect(rows.locator("#toasts .toast-static")).to_have_count(1)
    expect(rows.locator("#cup")).to_be_empty()


def test_a_failure_names_the_notice_that_says_what_is_away(rows: Page, watch: Watch) -> None:
    watch.expect("503")
    rows.route("**/*", lambda route: route.fulfill(status=503, headers={"X-Notice": "part-away"}))
    rows.get_by_role("button", name="Break").click()
    expect(rows.locator("#toasts .toast-static")).to_contain_text("One server of the database is not responding")
    rows.unroute_all()


def test_part_cannot_bring_scripts_styles_or_foreign_images(rows: Page, watch: Watch) -> None:
    """Nor can a script turn text into HTML, or the browser keep copies of pages."""
    assert rows.evaluate("htmx.config.historyCacheSize") == 0
    assert rows.evaluate("htmx.config.allowEval") is False
    watch.expect("TrustedHTML")
    with pytest.raises(Error, match="TrustedHTML"):
        rows.evaluate("document.getElementById('cup').innerHTML = '<b>text</b>'")
    watch.expect("Content Security Policy")
    watch.expect("foreign request")
    rows.get_by_role("button", name="Inject").click()
    expect(rows.locator("#injected")).to_be_visible()
    rows.locator("#injected").click()
    expect(rows).to_have_title("Rows · memadmin")
    assert rows.locator("#injected").evaluate("node => getComputedStyle(node).color") != "rgb(255, 0, 0)"


class TestWithoutScripts:
    @pytest.fixture
    def context(self, new_context: Callable[..., BrowserContext]) -> BrowserContext:
        return new_context(java_script_enabled=False)

    def test_menus_open_and_what_needs_scripts_is_not_offered(self, rows: Page) -> None:
        expect(rows.get_by_role("button", name="Switch between light and dark")).to_be_hidden()
        rows.locator("summary", has_text="support").click()
        rows.get_by_role("button", name="Sign out").click()
        expect(rows).to_have_title("Sign in · memadmin")


def test_times_are_in_the_zone_of_the_browser_or_in_utc(page: Page, sign_in: SignIn, watch: Watch) -> None:
    sign_in("support")
    page.goto("/accounts/")
    page.reload()
    clock = page.locator("[data-clock]")
    expect(clock).to_have_attribute("data-clock", "Asia/Tokyo")
    expect(page.get_by_label("In your time zone: Asia/Tokyo")).to_be_checked()
    page.get_by_label("In UTC").check()
    page.get_by_role("button", name="Save").press("Enter")
    expect(clock).to_have_attribute("data-clock", "UTC")
    expect(page.get_by_label("In UTC")).to_be_checked()
