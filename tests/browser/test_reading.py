"""Saying what one reads for, and being stopped, as somebody meets them who only wanted to read a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.browser.conftest import Look, Watch

SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def addresses(kept_main_store: SessionStore) -> list[str]:
    add_items("customer_1:ticket_1", "Where is my order?")
    add_items("customer_2:ticket_2", "And mine?")
    return [record.get_absolute_url() for record in SessionRecord.objects.order_by("session_id")]


def test_a_purpose_is_stated_by_keyboard_and_the_session_is_there(
    addresses: list[str], sign_in: SignIn, page: Page, look: Look, settings: Any, watch: Watch
) -> None:
    watch.expect("422")
    settings.PURPOSE_REQUIRED = True
    sign_in("support")
    page.goto(addresses[0])
    expect(page.get_by_role("heading", name="Why are you reading conversations?")).to_be_visible()
    page.get_by_role("button", name="Continue").press("Enter")
    expect(page.get_by_text("Choose a purpose. It is recorded with every read.")).to_be_visible()
    page.get_by_label("Purpose", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.get_by_role("textbox", name="Ticket (optional)").fill("T-1")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Where is my order?")).to_be_visible()
    page.goto(addresses[1])
    expect(page.get_by_text("And mine?")).to_be_visible()
    # The page that asked, and beside it what was stated, in the shell.
    look("/accounts/purpose/", with_shell=True)


def test_who_opens_too_many_sessions_is_told_when_to_go_on(
    addresses: list[str], sign_in: SignIn, page: Page, look: Look, settings: Any, watch: Watch
) -> None:
    watch.expect("429")
    settings.READ_LIMIT = 1
    sign_in("support")
    page.goto(addresses[0])
    expect(page.get_by_text("Where is my order?")).to_be_visible()
    page.goto(addresses[1])
    expect(page.get_by_role("heading", name="Hourly limit reached")).to_be_visible()
    expect(page.get_by_text("And mine?")).to_have_count(0)
    look(addresses[1])
    page.goto(addresses[0])
    expect(page.get_by_text("Where is my order?")).to_be_visible()
