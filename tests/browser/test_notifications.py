"""The bell, by keyboard and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.erasure.models import SubjectRequest
from tests.browser.conftest import Watch, in_all_views
from tests.browser.looking import assert_accessible
from tests.builders import make_subject
from tests.erasure.builders import awaiting
from tests.people import person


@pytest.fixture
def case(transactional_db: None) -> SubjectRequest:
    """An erasure that waits for a second person."""
    return awaiting(make_subject("cust_48213"), by=person("compliance"), received_on=now().date() - timedelta(days=3))


def test_bell_says_what_waits_and_is_quiet_once_it_was_read(
    case: SubjectRequest, page: Page, sign_in: Callable[..., User], watch: Watch
) -> None:
    sign_in("compliance", "administrator")
    page.goto("/accounts/")
    bell = page.locator("summary.bell")
    expect(bell).to_have_accessible_description(re.compile(r"\d+ unread"))
    page.keyboard.press("b")
    panel = page.locator("#notifications")
    expect(panel.get_by_role("link", name="1 erasure to decide")).to_be_visible()
    assert_accessible(page)
    panel.get_by_role("button", name="Mark all as read").press("Enter")
    expect(panel.get_by_text("none unread")).to_be_visible()
    expect(page.locator("#bell-count")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(bell).to_be_focused()
    page.keyboard.press("b")
    panel.get_by_role("link", name="1 erasure to decide").press("Enter")
    expect(page).to_have_url(re.compile(reverse("erasure:requests")))
    expect(page.get_by_text(str(case))).to_be_visible()


@in_all_views
def test_page_of_notifications_looks_sound(
    case: SubjectRequest, look: Callable[..., None], sign_in: Callable[..., User]
) -> None:
    sign_in("compliance", "administrator")
    look("/notifications/")
