"""Help inside the product, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.looking import assert_accessible

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


def test_help_looks_sound_and_a_command_is_copied(page: Page, look: Look, sign_in: SignIn) -> None:
    sign_in("compliance")
    look("/help/")
    look("/help/tour/")
    look("/help/audit/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role("button", name="Copy verify_audit command")
    button.press("Enter")
    expect(button).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "memadmin verify_audit"


def test_word_is_explained_by_keyboard(page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    page.goto("/reviews/")
    button = page.get_by_role("button", name="What is “Gate”?")
    note = page.locator("#about-gate")
    expect(note).to_be_hidden()
    for opens in ("Enter", "Space"):
        button.focus()
        page.keyboard.press(opens)
        expect(note).to_be_visible()
        expect(note).to_contain_text("agents approved memories only")
        page.keyboard.press("Escape")
        expect(note).to_be_hidden()
        expect(button).to_be_focused()

    # Open, it is accessible, and leads to the glossary.
    button.press("Enter")
    assert_accessible(page)
    page.keyboard.press("Tab")
    expect(page.locator("#about-gate").get_by_role("link", name="More")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/help/#term-gate$"))
    expect(page.locator("#term-gate")).to_be_in_viewport()


def test_explanation_stays_on_the_screen_of_a_phone(page: Page, sign_in: SignIn) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in("compliance")
    page.goto("/sessions/")
    page.get_by_role("button", name="What is “Store”?").click()
    expect(page.locator("#about-store")).to_be_in_viewport(ratio=1)


def test_help_of_the_area_is_in_the_top_bar_and_on_a_phone_in_the_menu(page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    page.goto("/stores/")
    page.get_by_role("link", name="Help", exact=True).click()
    expect(page).to_have_url(re.compile("/help/stores/$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Stores")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/stores/")
    page.locator("summary", has_text="support").click()
    page.get_by_role("link", name="Help", exact=True).click()
    expect(page).to_have_url(re.compile("/help/stores/$"))


class TestWithoutScripts:
    @pytest.fixture
    def context(self, new_context: Callable[..., BrowserContext]) -> BrowserContext:
        return new_context(java_script_enabled=False)

    def test_word_is_explained(self, page: Page, sign_in: SignIn) -> None:
        sign_in("compliance")
        page.goto("/subjects/")
        page.get_by_role("button", name="What is “Subject”?").click()
        expect(page.locator("#about-subject")).to_be_visible()
