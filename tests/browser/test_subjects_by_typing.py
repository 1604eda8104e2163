"""Subjects by typing a part of an ID, attached and given back, with the keyboard and without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from sessions_app.models import SessionRecord, SessionStore, Subject, SubjectKind
from tests.agents import add_items, user
from tests.browser.looking import assert_accessible
from tests.builders import make_subject

SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def ada(kept_main_store: SessionStore) -> Subject:
    for number in range(1, 4):
        add_items(f"s{number}", user("Hello"))
    make_subject("customer_beatrice")
    return make_subject("customer_ada", kind=SubjectKind.TENANT)


def subject_of(session_id: str) -> Subject | None:
    return SessionRecord.objects.select_related("subject").get(session_id=session_id).subject


def test_session_is_attached_and_given_back_by_keyboard(ada: Subject, page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    page.goto(reverse("sessions:list"))
    bar = page.get_by_role("form", name="Selected sessions")
    expect(bar).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(bar).to_be_visible()
    bar.locator("summary", has_text="Attach").press("Enter")
    field = bar.get_by_role("combobox", name="ID in the host application")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type("customer")
    options = page.get_by_role("listbox", name="Subjects").get_by_role("option")
    expect(options).to_have_text(["customer_ada tenant", "customer_beatrice user"], use_inner_text=True)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", "suggested-1")
    assert_accessible(page)
    # Escape closes the suggestions only, and the field keeps the focus.
    page.keyboard.press("Escape")
    expect(options).to_have_count(0)
    expect(field).to_be_focused()
    page.keyboard.type("_a")
    expect(options).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(field).to_have_value("customer_ada")
    expect(bar.get_by_label("Kind")).to_have_value("tenant")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("1 session attached.")
    assert SessionRecord.objects.filter(subject=ada).count() == 1
    page.keyboard.press("j")
    here = page.locator("[data-row] a:focus").get_attribute("href")
    page.keyboard.press("u")
    expect(page.locator("#toasts")).to_contain_text("Undone: 1 session as before.")
    assert not SessionRecord.objects.filter(subject=ada).exists()
    # Where it was.
    expect(page.locator(f'[data-row] a[href="{here}"]').first).to_be_focused()


def test_undo_of_a_detachment_leads_back_to_its_button(ada: Subject, page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    record = SessionRecord.objects.get(session_id="s1")
    SessionRecord.objects.filter(pk=record.pk).update(subject=ada)
    page.goto(record.get_absolute_url())
    button = page.get_by_role("button", name="Detach")
    button.press("Enter")
    expect(page.locator("#toasts")).to_contain_text("1 session detached; patterns no longer attach it.")
    expect(button).to_have_count(0)
    page.keyboard.press("u")
    expect(page.locator("#toasts")).to_contain_text("Undone: 1 session as before.")
    expect(button).to_be_focused()


def test_option_is_chosen_with_the_mouse(ada: Subject, page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    page.goto(reverse("retention:holds"))
    field = page.get_by_label("ID or label")
    field.click()
    page.keyboard.type("beatr")
    page.get_by_role("option", name="customer_beatrice").click()
    expect(field).to_have_value("customer_beatrice")
    expect(field).to_be_focused()
    expect(page.locator(".suggestions")).to_be_hidden()


@pytest.mark.release
def test_field_is_an_ordinary_one_without_javascript(
    ada: Subject, page: Page, sign_in: SignIn, browser: Browser, live_server: LiveServer
) -> None:
    sign_in("support")
    record = SessionRecord.objects.get(session_id="s1")
    with browser.new_context(
        java_script_enabled=False, storage_state=page.context.storage_state(), base_url=live_server.url
    ) as context:
        plain = context.new_page()
        plain.goto(record.get_absolute_url())
        plain.get_by_text("Attach to a subject").click()
        plain.get_by_label("Kind").select_option("tenant")
        plain.get_by_label("ID in the host application").fill("customer_ada")
        plain.get_by_role("button", name="Attach session").click()
        expect(plain.locator("#toasts")).to_contain_text("1 session attached.")
        plain.get_by_role("button", name="Undo").click()
        expect(plain.locator("#toasts")).to_contain_text("Undone: 1 session as before.")
    assert subject_of("s1") is None
