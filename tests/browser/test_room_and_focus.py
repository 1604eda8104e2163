"""Nothing lies over what one reads or decides, and the focus is where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import FloatRect, Locator, Page, expect

from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items, user
from tests.browser import looking
from tests.browser.conftest import Watch
from tests.memories.queue import waiting

SignIn: TypeAlias = Callable[..., User]

FAIL = "document.dispatchEvent(new CustomEvent('htmx:sendError'))"
"""Shows a notice, as after a failed request."""

ZOOMED = {"width": 720, "height": 450}
"""A window of 1440 by 900 at 200 %."""


@pytest.fixture
def sessions(kept_main_store: SessionStore) -> None:
    for number in range(30):
        add_items(f"s{number:02}", user("Hello"))


def comes_apart(one: Locator, other: Locator) -> None:
    """Asserts that they come to rest without an overlap: their places are read one after the other."""

    def rest_apart() -> bool:
        places = one.bounding_box(), other.bounding_box()
        one.page.evaluate("() => new Promise(requestAnimationFrame)")
        return places == (one.bounding_box(), other.bounding_box()) and not overlap(*places)

    assert looking.wait_until(one.page, rest_apart), f"{one.bounding_box()} {other.bounding_box()}"


def overlap(first: FloatRect | None, second: FloatRect | None) -> bool:
    assert first
    assert second
    is_beside = first["x"] >= second["x"] + second["width"] or second["x"] >= first["x"] + first["width"]
    is_below = first["y"] >= second["y"] + second["height"] or second["y"] >= first["y"] + first["height"]
    return not (is_beside or is_below)


@pytest.mark.parametrize("view", [pytest.param(looking.BY_DAY, marks=pytest.mark.release), looking.ON_A_PHONE], ids=str)
def test_notice_covers_neither_the_last_row_nor_the_bar_for_ticked_rows(
    sessions: None, page: Page, sign_in: SignIn, view: looking.View
) -> None:
    sign_in("support")
    looking.turn_to(page, view)
    page.goto(reverse("sessions:list"))
    page.evaluate(FAIL)
    toast = page.locator("#toasts .toast-static")
    expect(toast).to_be_visible()
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    comes_apart(page.locator("tbody tr").last, toast)
    page.keyboard.press("j")
    page.keyboard.press("x")
    bar = page.get_by_role("form", name="Selected sessions")
    expect(bar).to_be_visible()
    comes_apart(bar, toast)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    comes_apart(page.locator("tbody tr").last, toast)


def test_notice_covers_no_decision(transactional_db: None, page: Page, sign_in: SignIn) -> None:
    memory = waiting("Drinks tea.")
    sign_in("reviewer")
    page.goto(reverse("reviews:review", args=[memory.pk]))
    page.evaluate(FAIL)
    toast = page.locator("#toasts .toast-static")
    expect(toast).to_be_visible()
    for view in looking.VIEWS[:2]:
        looking.turn_to(page, view)
        page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        comes_apart(page.locator(".decide"), toast)


def test_bar_of_decisions_leaves_room_when_the_page_is_zoomed(
    transactional_db: None, page: Page, sign_in: SignIn
) -> None:
    memory = waiting("Drinks tea. " * 40)
    sign_in("reviewer")
    page.set_viewport_size(ZOOMED)  # type: ignore[arg-type]
    page.goto(reverse("reviews:review", args=[memory.pk]))
    page.evaluate("window.scrollTo(0, 300)")
    bar, shell = page.locator(".decide").bounding_box(), page.locator(".topbar").bounding_box()
    assert bar
    assert shell
    top = max(shell["y"] + shell["height"], 0)
    bottom = min(max(bar["y"], top), ZOOMED["height"])
    assert bottom - top > ZOOMED["height"] / 2
    # It is reached all the same.
    page.evaluate("document.querySelector('.decide').scrollIntoView({ block: 'center' })")
    expect(page.get_by_role("button", name="Approve")).to_be_in_viewport(ratio=1)


OPEN = """
(summary) => new Promise((opened) => {
  summary.parentElement.addEventListener("toggle", () => opened(null), { once: true });
  summary.click();
})
"""
"""Opens a menu, and waits for the event by which the page notes where the focus was."""


def test_escape_closes_a_menu_and_gives_the_focus_back(sessions: None, page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    page.goto(reverse("sessions:list"))
    more = page.locator("summary", has_text="More")
    more.click()
    page.get_by_label("Subject", exact=True).focus()
    page.keyboard.press("Escape")
    expect(more).to_be_focused()
    # Opened by a script, as by a key, it gives the focus back to the row.
    row = page.locator("[data-row] a").first
    row.focus()
    more.evaluate(OPEN)
    page.get_by_label("Subject", exact=True).focus()
    page.keyboard.press("Escape")
    expect(row).to_be_focused()


def test_ctrl_enter_submits_a_text(sessions: None, page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    record = SessionRecord.objects.first()
    assert record
    page.goto(reverse("sessions:redact-session", args=[record.pk]))
    page.get_by_label("Reason", exact=True).select_option("leaked_secret")
    page.get_by_label("Text to redact", exact=True).fill("Hello")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#preview")).to_contain_text("1 occurrence in 1 item")


def test_a_form_that_came_back_begins_at_its_first_mistake(
    transactional_db: None, page: Page, sign_in: SignIn, watch: Watch
) -> None:
    watch.expect("status of 422")
    sign_in("compliance")
    page.goto(reverse("retention:holds"))
    form = page.locator("form", has=page.get_by_role("button", name="Place hold"))
    covered = form.locator("[name=value]")
    covered.fill("nobody")
    form.get_by_label("Reason").fill("Claim 2026-0419")
    form.get_by_role("button", name="Place hold").click()
    expect(page.get_by_role("alert")).to_be_visible()
    expect(covered).to_be_focused()
