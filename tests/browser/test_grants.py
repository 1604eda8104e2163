"""Breaking the glass in the browser: asking, deciding, reading, giving back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.approvals import approve_grant, without_triggers
from tests.browser.conftest import Watch, in_all_views
from tests.people import person

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def locked(kept_main_store: SessionStore) -> SessionRecord:
    add_items("customer_1:ticket_1", "The word is periwinkle")
    SessionRecord.objects.update(is_sensitive=True, ticket="T-90417")
    return SessionRecord.objects.get()


def test_from_the_locked_page_to_the_words_and_back(
    locked: SessionRecord, page: Page, sign_in: SignIn, watch: Watch
) -> None:
    watch.expect("status of 403")
    sign_in("support")
    compliance = person("compliance")
    page.goto(locked.get_absolute_url())
    expect(page.get_by_text("The content of this session is locked")).to_be_visible()
    expect(page.get_by_label("Ticket", exact=True)).to_have_value("T-90417")
    page.get_by_label("Reason", exact=True).select_option("incident")
    page.get_by_label("Explanation").fill("The pump failed.")
    page.get_by_role("button", name="Request access").click()
    expect(page.get_by_text("waiting for a second person").first).to_be_visible()

    approve_grant(ContentGrant.objects.get(), by=compliance)
    page.goto(locked.get_absolute_url())
    expect(page.locator("#timeline")).to_contain_text("periwinkle")
    expect(page.get_by_text("You can read 1 locked session until")).to_be_visible()
    page.get_by_role("button", name="End access now").click()
    expect(page.get_by_text("The grant has ended.")).to_be_visible()
    page.goto(locked.get_absolute_url())
    expect(page.get_by_text("The content of this session is locked")).to_be_visible()


def test_an_open_page_loses_the_words_when_the_grant_ends(
    locked: SessionRecord, page: Page, sign_in: SignIn, watch: Watch, refresh: Callable[[], None]
) -> None:
    watch.expect("status of 403")
    support = sign_in("support")
    grant = services.request_grant(by=support, record_ids=[locked.pk], reason="incident", ticket="T-1")
    approve_grant(grant, by=person("compliance"))
    page.goto(locked.get_absolute_url())
    expect(page.locator("#timeline")).to_contain_text("periwinkle")
    services.end_grant(grant, by=support)
    refresh()
    expect(page.get_by_text("The content of this session is locked")).to_be_visible()
    expect(page.locator("body")).not_to_contain_text("periwinkle")


@in_all_views
def test_how_the_pages_look(locked: SessionRecord, look: Look, sign_in: SignIn, watch: Watch) -> None:
    watch.expect("status of 403")
    support, compliance = person("support"), sign_in("compliance")
    wanted: dict[str, Any] = {"record_ids": [locked.pk], "reason": "incident", "ticket": "T-90417"}
    waiting = services.request_grant(by=support, **wanted)
    over = services.end_grant(approve_grant(services.request_grant(by=support, **wanted), by=compliance), by=support)
    services.request_grant(by=compliance, **wanted)
    look("/accounts/grants/")
    # To decide, and to review; an open one has the button of neither.
    for grant in (waiting, over):
        look(grant.get_absolute_url())
    look(locked.get_absolute_url())


def test_compliance_locks_with_the_keyboard(locked: SessionRecord, page: Page, sign_in: SignIn) -> None:
    with without_triggers():
        SessionRecord.objects.update(is_sensitive=False)
    sign_in("compliance")
    page.goto("/sessions/")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.locator("#selection summary", has_text="Lock").press("Enter")
    page.get_by_role("button", name="Lock sessions", exact=True).press("Enter")
    expect(page.get_by_text("1 session locked; reading them now needs a grant.")).to_be_visible()
    expect(page.get_by_text("Locked: first words need a grant")).to_be_visible()
