"""Order and columns of a list by keyboard, and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.browser.conftest import Look
from tests.browser.looking import assert_accessible, assert_no_sideways_scroll
from tests.memories.builders import proposed
from tests.runs.working import work_off

SignIn = Callable[..., User]


def test_columns_and_order_by_keyboard(kept_main_store: SessionStore, page: Page, look: Look, sign_in: SignIn) -> None:
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
    page.set_viewport_size({"width": 390, "height": 844})
    for menu in ("Sort and columns", "Views"):
        page.locator("summary", has_text=menu).press("Enter")
        assert_no_sideways_scroll(page)


def test_all_that_match_by_keyboard(kept_main_store: SessionStore, page: Page, look: Look, sign_in: SignIn) -> None:
    for number in (1, 2, 3):
        add_items(f"session-{number}", f"Question {number}")
    sign_in("support")
    page.goto("/sessions/?days=7")
    offer = page.get_by_role("link", name=re.compile("Select all"))
    expect(offer).to_be_hidden()
    page.get_by_label("Select all on this page").press("Space")
    expect(offer).to_have_text(re.compile(r"\s*Select all\s+3\s+that match…\s*"))
    offer.press("Enter")
    expect(page.get_by_label("Label to add or remove")).to_be_hidden()
    expect(page.get_by_role("heading", name="3 sessions match")).to_be_visible()
    assert_accessible(page)
    page.get_by_label("Add label").press("Space")
    page.get_by_label("Label to add or remove").press_sequentially("spring")
    page.keyboard.press("Enter")
    expect(page.get_by_text("add label for 3 sessions, in progress.")).to_be_visible()
    assert work_off() == 1
    assert SessionRecord.objects.filter(labels=["spring"]).count() == 3


def test_all_proposals_by_keyboard(page: Page, look: Look, sign_in: SignIn) -> None:
    for number in (1, 2, 3):
        proposed(f"Likes tea number {number}.")
    sign_in("reviewer")
    page.goto("/reviews/?as=table")
    offer = page.get_by_role("link", name=re.compile("Select all"))
    expect(offer).to_be_hidden()
    page.get_by_label("All on this page").press("Space")
    expect(offer).to_have_text(re.compile(r"\s*Select all\s+3\s+that match…\s*"))
    page.set_viewport_size({"width": 390, "height": 844})
    assert_no_sideways_scroll(page)
    cut = "buttons => buttons.filter(each => each.scrollWidth > each.clientWidth).map(each => each.textContent)"
    assert page.locator(".bulk > .btn").evaluate_all(cut) == []
    offer.press("Enter")
    expect(page.get_by_role("heading", name="3 proposals match")).to_be_visible()
    assert_accessible(page)
    expect(page.get_by_text("How long")).to_be_hidden()
    page.get_by_label("Snooze").press("Space")
    page.get_by_label("1 day").press("Space")
    page.get_by_role("button", name="Apply to 3 proposals").press("Enter")
    expect(page.get_by_text("snooze 3 proposals, in progress.")).to_be_visible()
    assert work_off() == 1
    # The page of the run.
    page.reload()
    expect(page.get_by_text("complete", exact=True)).to_be_visible()
    page.goto("/reviews/?as=table")
    expect(page.get_by_text("No proposals are waiting.")).to_be_visible()
