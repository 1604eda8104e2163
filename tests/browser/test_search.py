"""Searching in the browser: from the top bar, in the session list, with and without JavaScript."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from sessions_app.models import AgentMessage, SessionRecord, SessionStore, TextSearch
from sessions_app.search.remembered import remember_search
from tests.agents import add_items, assistant
from tests.browser.conftest import Watch, in_all_views, say_why
from tests.builders import make_subject
from tests.people import person

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def conversations(kept_main_store: SessionStore) -> None:
    add_items("customer_1:ticket_1", "My flight AX 482 was cancelled and I want the refund to my card, not a voucher")
    add_items("customer_1:ticket_1", assistant("The refund is on its way."))
    add_items("customer_2:ticket_2", "¿Puedo cambiar el nombre? Me casé el mes pasado, and 482 is my seat")
    add_items("a-" + "long" * 80, "x" * 3_000 + " refund " + "y" * 3_000)
    SessionRecord.objects.filter(session_id="customer_1:ticket_1").update(
        subject=make_subject("cust_48213"), ticket="T-90482"
    )


def test_support_finds_a_customer_and_what_was_said(conversations: None, page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("482")
    page.keyboard.press("Enter")

    expect(page.get_by_role("link", name="cust_48213")).to_be_visible()
    expect(page.get_by_role("link", name="T-90482")).to_be_visible()
    said = page.get_by_role("region", name="Sessions with matching messages")
    expect(said.get_by_role("link", name="flight AX 482")).to_be_visible()
    # Its port and its id may have these digits by chance.
    assert re.fullmatch(r"http://[^/]+/search/[0-9a-f-]{36}/", page.url)
    assert "482" not in page.title()

    said.get_by_role("link", name="flight AX 482").click()
    expect(page.get_by_text("My flight AX 482 was cancelled")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("link", name="cust_48213")).to_be_visible()

    # The list is narrowed to what was said.
    page.goto("/sessions/?store=main")
    page.get_by_role("textbox", name="Words in messages").fill("casé")
    page.keyboard.press("Enter")

    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody mark")).to_have_text("casé")
    expect(page.get_by_role("textbox", name="Words in messages")).to_have_value("casé")
    page.get_by_role("link", name="Remove filter words “casé”").click()
    expect(page.locator("tbody tr")).to_have_count(3)


@pytest.mark.release
def test_it_works_without_javascript(
    conversations: None, browser: Browser, browser_context_args: dict[str, Any], live_server: LiveServer
) -> None:
    context = browser.new_context(**browser_context_args, java_script_enabled=False)
    client = Client()
    client.force_login(person("support"))
    context.add_cookies(
        [
            {
                "name": settings.SESSION_COOKIE_NAME,
                "value": client.cookies[settings.SESSION_COOKIE_NAME].value,
                "url": live_server.url,
            }
        ]
    )
    page = context.new_page()
    page.goto("/")
    page.get_by_role("searchbox", name="Find a subject, ticket or session ID").fill("refund")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Sessions with matching messages").click()
    expect(page.locator("mark", has_text="refund").first).to_be_visible()
    context.close()


@in_all_views
def test_the_pages_look_right(conversations: None, look: Look, sign_in: SignIn, watch: Watch) -> None:
    user = sign_in("support")
    look(f"/search/{remember_search(user, '482').pk}/")
    look(f"/search/{remember_search(user, 'refund').pk}/messages/")
    look(f"/sessions/?search={TextSearch.objects.get(text='refund').pk}")
    # With the form that asks again, as an empty search has it.
    watch.expect("status of 410")
    look("/search/00000000-0000-4000-8000-000000000000/")


def test_an_editor_is_warned_before_a_pair_breaks(
    kept_main_store: SessionStore, page: Page, sign_in: SignIn, look: Look, watch: Watch
) -> None:
    watch.expect("status of 422")
    editor = sign_in("support")
    editor.user_permissions.add(Permission.objects.get(codename="raw_edit"))
    call = {"type": "function_call", "call_id": "call_1", "name": "refund", "arguments": "{}"}
    add_items("s", "refund it", call, {"type": "function_call_output", "call_id": "call_1", "output": "done"})
    item = AgentMessage.objects.get(message_data__contains='"name"')
    page.goto(f"/admin/sessions_app/agentmessage/{item.pk}/change/")

    page.get_by_label("Stored text").fill('{"role": "user", "content": "no call"}')
    say_why(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("would remain without its call")).to_be_visible()
    page.get_by_label("Save anyway").check()
    page.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("was changed successfully")).to_be_visible()
    assert AgentMessage.objects.get(pk=item.pk).message_data == '{"role": "user", "content": "no call"}'
