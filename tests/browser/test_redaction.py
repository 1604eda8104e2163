"""From an item in the timeline to a text that is gone, with the keyboard, and with JavaScript switched off."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from sessions_app.audit_events import RedactReason
from sessions_app.models import Redaction, SessionRecord, SessionStore
from sessions_app.redaction import services
from sessions_app.redaction.services import RedactionRequest
from tests.agents import add_items, assistant, user
from tests.browser.conftest import Watch, in_all_views
from tests.browser.looking import assert_accessible
from tests.builders import make_subject
from tests.runs.working import report_of, work_off

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]

SECRET = "sk-live-4711"


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", user(f"My key is {SECRET}"), {"type": "compaction", "id": "c", "encrypted_content": "gAAA"})
    add_items("s", assistant("Thank you."))
    SessionRecord.objects.filter(session_id="s").update(subject=make_subject("customer_1"), ticket="T-1")
    return SessionRecord.objects.select_related("subject").get(session_id="s")


def test_from_the_session_to_the_result_by_keyboard(
    record: SessionRecord, page: Page, sign_in: SignIn, refresh: Callable[[], None]
) -> None:
    sign_in("compliance")
    page.goto(record.get_absolute_url())
    page.get_by_role("link", name="Redact a text…").press("Enter")
    text = page.get_by_label("Text to redact", exact=True)
    expect(text).to_be_focused()
    page.keyboard.type(SECRET)
    page.keyboard.press("Tab")
    page.get_by_label("Reason", exact=True).select_option("leaked_secret")
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.locator("#preview")).to_contain_text("1 occurrence in 1 item")
    expect(page.locator("#preview")).to_contain_text(
        "1 compaction block may also contain the text and cannot be inspected."
    )
    page.get_by_role("button", name="Redact 1 item").press("Enter")
    expect(page.locator("#redaction")).to_contain_text("The text to redact is stored until the redaction ends")
    assert SECRET not in page.url
    work_off()
    refresh()
    expect(page.locator("#redaction")).to_contain_text("The history can still be replayed")
    expect(page.locator("#redaction")).to_contain_text("A later compaction block may contain the text")
    page.goto(record.get_absolute_url())
    expect(page.locator("#timeline")).to_contain_text("My key is [redacted]")
    expect(page.locator("#timeline .badge", has_text="redacted")).to_be_visible()


def test_a_block_is_taken_out_from_its_separator_and_without_javascript(
    record: SessionRecord, page: Page, sign_in: SignIn, browser: Browser, live_server: LiveServer
) -> None:
    sign_in("compliance")
    with browser.new_context(
        java_script_enabled=False, storage_state=page.context.storage_state(), base_url=live_server.url
    ) as context:
        plain = context.new_page()
        plain.goto(record.get_absolute_url())
        plain.get_by_role("link", name="Remove…").click()
        plain.get_by_label("Reason", exact=True).select_option("personal_data")
        plain.get_by_role("button", name="Preview").click()
        plain.get_by_role("button", name=re.compile("Redact 1 item")).click()
        work_off()
        plain.get_by_role("link", name="Refresh").click()
        expect(plain.locator("#redaction")).to_contain_text("1 compaction block")
        plain.goto(record.get_absolute_url())
        expect(plain.locator("#timeline")).not_to_contain_text("History compacted")


def test_large_redaction_is_typed_requested_approved_and_carried_out_by_keyboard(
    record: SessionRecord,
    page: Page,
    sign_in: SignIn,
    refresh: Callable[[], None],
    settings: Any,
    look: Look,
    watch: Watch,
) -> None:
    settings.REDACT_ALONE_PLACES = 11
    watch.expect("status of 422")
    add_items("s", *(user(f"{number}. My key is {SECRET}, for card 4242 4242 4242 4242") for number in range(11)))
    sign_in("compliance")
    page.goto(reverse("sessions:redact-session", args=[record.pk]))
    expect(page.get_by_label("Text to redact", exact=True)).to_be_focused()
    page.keyboard.type(SECRET)
    page.get_by_label("Reason", exact=True).select_option("leaked_secret")
    page.get_by_role("button", name="Preview").press("Enter")
    places = page.get_by_role("region", name="Places").get_by_role("listitem")
    expect(places).to_have_count(12)
    expect(places.nth(1)).to_contain_text(f"0. My key is {SECRET}[redacted], for card ••••")
    assert_accessible(page)
    request = page.get_by_role("button", name="Request approval to redact 12 items")
    request.press("Enter")
    confirmation = page.get_by_label("Type redact 12 to confirm")
    expect(page.get_by_role("alert")).to_have_text("Type “redact 12” to confirm.")
    # Below a long list of places, which the page would else begin with.
    expect(confirmation).to_be_focused()
    confirmation.fill("redact 12")
    page.keyboard.press("Enter")
    expect(page.locator("#redaction")).to_contain_text("Waiting until another person approves")
    expect(page.get_by_role("button", name="Withdraw")).to_be_visible()
    requested = page.url
    sign_in("compliance", "support")
    look(requested)
    look(reverse("sessions:redactions"))
    page.get_by_role("link", name="Decide about redaction").press("Enter")
    page.wait_for_url(requested)
    page.get_by_label("Type redact 12 to confirm").fill("redact 12")
    page.get_by_role("button", name="Approve redaction").press("Enter")
    expect(page.locator("#toasts")).to_contain_text("The redaction was approved")
    expect(page.locator("#redaction progress")).to_be_visible()
    work_off()
    # By itself, without a page load.
    refresh()
    expect(page.locator("#redaction")).to_contain_text("12 occurrences in 12 items")
    expect(page.locator("#toasts")).to_contain_text("The redaction was approved")


@in_all_views
def test_pages_in_all_sizes_and_themes(record: SessionRecord, page: Page, sign_in: SignIn, look: Look) -> None:
    officer = sign_in("compliance")
    # That of a subject is the same page.
    look(reverse("sessions:redact-session", args=[record.pk]))
    asked = services.redact_in_session(record, RedactionRequest(SECRET, reason=RedactReason.LEAKED_SECRET, by=officer))
    look(asked.get_absolute_url())
    work_off()
    look(asked.get_absolute_url())
    assert report_of(Redaction.objects.get())["reasons"]
