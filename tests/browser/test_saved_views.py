"""Saved views by keyboard: save, open, rename, make default, delete."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from memadmin.home.models import SavedView
from tests.browser.conftest import Look
from tests.builders import make_store

SignIn = Callable[..., User]


def press(page: Page, name: str, role: str = "button") -> None:
    """By keyboard, in the menu of views, which is opened first if it is closed."""
    menu = page.locator("details.menu", has=page.locator("summary", has_text="Views"))
    if menu.get_attribute("open") is None:
        menu.locator("summary").focus()
        page.keyboard.press("Enter")
    menu.get_by_role(role, name=name).focus()  # type: ignore[arg-type]
    page.keyboard.press("Enter")


def test_a_view_from_first_to_last(transactional_db: None, page: Page, look: Look, sign_in: SignIn) -> None:
    make_store("alpha")
    make_store("beta")
    sign_in("administrator")
    page.goto("/stores/?sort=-store&columns=store,health,added")
    expect(page.locator("[data-row]").first).to_contain_text("beta")
    page.locator("summary", has_text="Views").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Save this list as").focus()
    page.keyboard.type("Backwards")
    page.keyboard.press("Enter")
    views = page.get_by_role("navigation", name="Saved views")
    expect(views.get_by_role("link", name="Backwards")).to_have_attribute("aria-current", "true")
    views.get_by_role("link", name="All").press("Enter")
    expect(page.locator("[data-row]").first).to_contain_text("alpha")
    views.get_by_role("link", name="Backwards").press("Enter")
    expect(page.locator("[data-row]").first).to_contain_text("beta")
    press(page, "Make default: Backwards")
    expect(page.get_by_text("This list now opens with “Backwards”.")).to_be_visible()
    page.goto("/stores/")
    expect(page.locator("[data-row]").first).to_contain_text("beta")
    page.locator("summary", has_text="Views").press("Enter")
    page.get_by_label("New name of Backwards").fill("Z to A")
    page.get_by_label("New name of Backwards").press("Enter")
    expect(views.get_by_role("link", name="Z to A")).to_be_visible()
    look(re.sub("^https?://[^/]*", "", page.url))
    page.goto("/stores/")
    press(page, "Delete: Z to A")
    expect(page.get_by_text("The view is deleted.")).to_be_visible()
    expect(page.locator("[data-row]").first).to_contain_text("alpha")
    assert not SavedView.objects.exists()
