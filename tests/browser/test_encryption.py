"""A sealed session in the browser: what shows without a grant, asking for one, reading, and each honest state."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from memadmin.accounts.grants import services
from memadmin.accounts.models import ContentGrant
from sessions_app.models import SessionRecord
from sessions_app.services.encryption import declare_encryption
from sessions_app.services.inspection import inspect_session
from tests.agents import add_items, attach_main_store, run_sql
from tests.approvals import approve_grant
from tests.browser.conftest import Watch, in_all_views
from tests.people import person
from tests.sealed import NEW_KEY, OLD_KEY, add_sealed
from tests.sealed import keys as keys

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]

pytestmark = pytest.mark.usefixtures("keys")


@pytest.fixture
def sealed(agent_tables: None) -> SessionRecord:
    """Of everything something: ordinary items, expired and tampered ones, of another key, and plain text."""
    declare_encryption(attach_main_store(), key="old")
    add_sealed("customer_1:ticket_1", "The word is periwinkle", "My card is 4111 1111 1111 1111", key=OLD_KEY)
    add_sealed("customer_1:ticket_1", "An old matter", key=OLD_KEY, age=timedelta(days=2))
    add_sealed("customer_1:ticket_1", "Changed since", key=OLD_KEY)
    run_sql(
        "UPDATE agent_messages SET message_data = overlay(message_data placing 'AAAA' from 140)"
        " WHERE id = (SELECT max(id) FROM agent_messages)"
    )
    add_sealed("customer_1:ticket_1", "With the next key", key=NEW_KEY)
    add_items("customer_1:ticket_1", "In plain text")
    SessionRecord.objects.update(ticket="T-90417")
    record = SessionRecord.objects.get()
    inspect_session(record)
    return record


def test_from_the_sealed_card_to_the_words_and_back(
    sealed: SessionRecord, page: Page, sign_in: SignIn, watch: Watch
) -> None:
    sign_in("support")
    compliance = person("compliance")
    page.goto(sealed.get_absolute_url())
    expect(page.locator("#timeline")).not_to_contain_text("periwinkle")
    page.get_by_role("link", name="Request access").first.click()
    expect(page.get_by_text("The content of this session is encrypted")).to_be_visible()
    page.get_by_label("Reason", exact=True).select_option("incident")
    page.get_by_label("Explanation").fill("The pump failed.")
    page.get_by_role("button", name="Request access").click()
    expect(page.get_by_text("waiting for a second person").first).to_be_visible()

    approve_grant(ContentGrant.objects.get(), by=compliance)
    page.goto(sealed.get_absolute_url())
    timeline = page.locator("#timeline")
    expect(timeline).to_contain_text("periwinkle")
    expect(timeline).to_contain_text("With the next key")
    expect(timeline).not_to_contain_text("Changed since")
    expect(timeline).not_to_contain_text("4111 1111")
    page.get_by_role("button", name="End access now").click()
    expect(page.get_by_text("The grant has ended.")).to_be_visible()
    page.goto(sealed.get_absolute_url())
    expect(timeline).not_to_contain_text("periwinkle")


def test_an_open_page_loses_the_words_when_the_grant_ends(
    sealed: SessionRecord, page: Page, sign_in: SignIn, refresh: Callable[[], None]
) -> None:
    support = sign_in("support")
    grant = services.request_grant(by=support, record_ids=[sealed.pk], reason="incident", ticket="T-1")
    approve_grant(grant, by=person("compliance"))
    page.goto(sealed.get_absolute_url())
    expect(page.locator("#timeline")).to_contain_text("periwinkle")
    services.end_grant(grant, by=support)
    refresh()
    expect(page.locator("#timeline")).not_to_contain_text("periwinkle")


@in_all_views
def test_how_the_pages_look(sealed: SessionRecord, look: Look, sign_in: SignIn) -> None:
    support = sign_in("support")
    look(sealed.get_absolute_url())
    grant = services.request_grant(by=support, record_ids=[sealed.pk], reason="incident", ticket="T-1")
    approve_grant(grant, by=person("compliance"))
    look(f"{sealed.get_absolute_url()}?opened")
    with_item = SessionRecord.objects.get().get_absolute_url()
    run_sql("UPDATE agent_messages SET id = 1000000 WHERE id = (SELECT min(id) FROM agent_messages)")
    look(f"{with_item}items/1000000/")
