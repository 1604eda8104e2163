"""Unlocking, and copies with locked sessions, in the browser: one person asks, another decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from memadmin.erasure.access_copy import services as copies
from sessions_app.models import SessionRecord, Subject
from sessions_app.services import unlocking
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, attach_main_store
from tests.browser.conftest import in_all_views
from tests.browser.looking import VIEWS, turn_to
from tests.builders import make_subject
from tests.erasure.copies import checked_access
from tests.people import person

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def locked(agent_tables: None) -> list[SessionRecord]:
    attach_main_store()
    for number in range(3):
        add_items(f"customer_1:ticket_{number}", "The word is periwinkle")
    SessionRecord.objects.update(is_sensitive=True)
    return list(SessionRecord.objects.order_by("session_id"))


@pytest.fixture
def ada(locked: list[SessionRecord], settings: Settings, tmp_path: Path) -> Subject:
    settings.ACCESS_COPY_FOLDER = tmp_path
    subject = make_subject("ada-1")
    attach_sessions(locked, subject, by=person("support"))
    return subject


def test_selected_sessions_are_unlocked_by_a_second_person(
    locked: list[SessionRecord], page: Page, sign_in: SignIn
) -> None:
    sign_in("compliance")
    page.goto("/sessions/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_text("Lock", exact=True).click()
    page.get_by_label("Reason").select_option("mistake")
    for view in VIEWS:
        turn_to(page, view)
        box = page.locator("#selection details[open] .dropdown-menu").bounding_box()
        assert box
        assert box["x"] >= 0, view
        assert box["x"] + box["width"] <= view.width, view
    page.get_by_role("button", name="Request unlocking").click()
    expect(page.get_by_text("Requested to unlock 1 session.")).to_be_visible()
    expect(page.get_by_role("button", name="Withdraw")).to_be_visible()
    assert SessionRecord.objects.filter(is_sensitive=True).count() == 3
    sign_in("compliance", "reviewer")
    page.goto("/")
    page.get_by_role("link", name="Decide", exact=True).click()
    page.get_by_role("button", name="Unlock these sessions").click()
    expect(page.get_by_text("The sessions are unlocked.")).to_be_visible()
    assert SessionRecord.objects.filter(is_sensitive=True).count() == 2


@in_all_views
def test_how_the_pages_look(locked: list[SessionRecord], ada: Subject, look: Look, sign_in: SignIn) -> None:
    officer, second = person("compliance", "auditor"), sign_in("compliance")
    ids = [record.pk for record in locked]
    rejected = unlocking.request_unlocking(ids, reason="legal", purpose="legal", by=officer)
    unlocking.reject_unlocking(rejected, by=second)
    unlocking.request_unlocking(ids, reason="case_closed", purpose="customer_case", by=officer)
    unlocking.request_unlocking(ids[:1], reason="mistake", by=second)
    look("/sessions/unlock/")
    look("/sessions/all-matching/")
    look("/")
    bob = make_subject("bob-1")
    attach_sessions(locked[:1], bob, by=officer)
    for subject in (ada, bob):
        case = checked_access(subject, by=officer)
        if subject == bob:
            copies.request_full_copy(case, by=officer, purpose="subject_request")
        look(case.get_absolute_url())
