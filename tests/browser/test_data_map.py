"""The data map in a real browser: filtered, filled in by keyboard, and looked at."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from memadmin.erasure.data_map.services import change_record
from memadmin.erasure.models import ProcessingRecord
from tests.browser.conftest import in_all_views
from tests.erasure.test_data_map_pages import HEAD

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]


def test_on_a_phone_a_record_has_room_for_its_values(page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/data-map/record/")
    widths = page.locator(".facts dd").evaluate_all("(all) => all.map((each) => each.getBoundingClientRect().width)")
    assert min(widths) > 150, "a value below the other, not a letter"


def test_the_map_is_filtered_and_its_head_filled_in_by_keyboard(page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Data map")).to_be_visible()
    page.get_by_label("Table, column or file").fill("subjectalias")
    page.keyboard.press("Enter")
    expect(page.get_by_text("sessions_app_subjectalias").first).to_be_visible()
    expect(page.get_by_text("agent_messages")).to_have_count(0)
    page.get_by_role("link", name="Clear all").press("Enter")
    expect(page.get_by_text("agent_messages").first).to_be_visible()
    page.keyboard.press("]")
    expect(page).to_have_url("/data-map/?cursor=2")
    page.keyboard.press("[")
    expect(page).to_have_url("/data-map/?cursor=1")
    page.get_by_role("link", name="Fill in the head of the record").press("Enter")
    for name in HEAD:
        page.locator(f"[name={name}]").fill(HEAD[name])
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The record of processing was saved.")
    assert ProcessingRecord.objects.get().purpose == HEAD["purpose"]


def test_record_is_reached_from_the_menu_by_keyboard(page: Page, sign_in: SignIn) -> None:
    sign_in("auditor")
    page.goto("/data-map/")
    page.locator("summary", has_text="Export record").press("Enter")
    page.get_by_role("link", name="Record of processing").press("Enter")
    expect(page.get_by_role("heading", name="Record of processing activities")).to_be_visible()


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    officer = sign_in("compliance")
    look("/data-map/")
    look("/data-map/record/change/")
    change_record(HEAD, by=officer, seen=None)
    look("/data-map/?erased_by=nothing_yet")
    look("/data-map/record/")
