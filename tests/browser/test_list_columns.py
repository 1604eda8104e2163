"""Order and columns of a list by keyboard, and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from tests.agents import add_items, attach_main_store
from tests.browser.conftest import Look

SignIn = Callable[..., User]


def test_columns_and_order_by_keyboard(agent_tables: None, page: Page, look: Look, sign_in: SignIn) -> None:
    attach_main_store()
    for number in (1, 2, 3):
        add_items(f"session-{number}", f"Question {number}")
    sign_in("support")
    page.goto("/sessions/")
    expect(page.locator("[data-row]").first).to_contain_text("Question 3")
    page.locator(".arrange > summary").focus()
    page.keyboard.press("Enter")
    page.get_by_role("checkbox", name="First seen").focus()
    page.keyboard.press("Space")
    page.locator(".arrange").get_by_role("button", name="Apply").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("columnheader", name="First seen")).to_be_visible()
    expect(page).to_have_url(re.compile("columns=registered"))
    page.get_by_role("link", name="Last activity").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-row]").first).to_contain_text("Question 1")
    expect(page.get_by_role("columnheader", name="Last activity")).to_have_attribute("aria-sort", "ascending")
    expect(page.get_by_role("columnheader", name="First seen")).to_be_visible()
    look(page.url.removeprefix(page.evaluate("location.origin")))
