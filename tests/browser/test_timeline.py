"""A session on screen, used with mouse and keyboard while an agent writes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Error, Page, expect

from memadmin.accounts.session_store import SessionStore
from memories_app.models import Signal
from sessions_app.models import SessionRecord
from sessions_app.services.inspection import inspect_session
from tests.agents import add_items, assistant
from tests.browser.conftest import Watch
from tests.browser.looking import assert_accessible, assert_no_sideways_scroll

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]

CALL = {"type": "function_call", "call_id": "call_1", "name": "find_order", "arguments": '{"number": "SO-1"}'}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": '{"state": "on its way"}'}


@pytest.fixture
def address(kept_main_store: object, sign_in: SignIn) -> str:
    sign_in("support")
    add_items("customer_1", "Where is my order?")
    add_items("customer_1", CALL, OUTPUT)
    add_items("customer_1", assistant("It is on its way."))
    return SessionRecord.objects.get().get_absolute_url()


def test_pages_look_sound(address: str, look: Look, page: Page) -> None:
    """A timeline with findings and masks, as bubbles and as Markdown; an item that is masked and revealed."""
    add_items("customer_1", "Thanks", OUTPUT | {"call_id": "call_lost"}, {"type": "hologram_call"})
    add_items(
        "customer_1",
        "My card is 4242 4242 4242 4242",
        assistant(
            "## Returns\n\n**Done**, see [the rules](https://example.com/rules):\n\n1. pack it\n2. send it\n\n"
            "> kept dry\n\n| parcel | state |\n|---|---|\n| `A-1` | on its way |\n\n"
            '```json\n{"mail": "guest@example.com"}\n```'
        ),
    )
    inspect_session(SessionRecord.objects.select_related("store").get())
    look(f"{address}?form=markdown")
    look(address)
    href = page.get_by_role("link", name="1 masked").first.get_attribute("href")
    assert href
    look(href)
    page.get_by_label("Reason").select_option("payment")
    page.get_by_role("button", name="Reveal values").click()
    expect(page.get_by_text("4242 4242 4242 4242").first).to_be_visible()
    assert_accessible(page)
    page.get_by_role("link", name="Mask again").click()
    expect(page.get_by_text("card •••• 4242").first).to_be_visible()
    expect(page.get_by_text("4242 4242 4242 4242")).to_have_count(0)


def test_a_session_is_revealed_and_masked_again_by_keyboard(address: str, page: Page) -> None:
    add_items("customer_1", "My card is 4242 4242 4242 4242", assistant("I wrote to guest@example.com"))
    page.goto(address)
    page.locator("summary", has_text="Reveal 2 values").press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Reason")).to_be_focused()
    page.keyboard.type("payment")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_text("4242 4242 4242 4242")).to_be_visible()
    expect(page.get_by_text("guest@example.com")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="6 items shown as stored")).to_be_visible()
    expect(page).to_have_title(re.compile("^As stored"))
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert_accessible(page)
        assert_no_sideways_scroll(page)
    page.get_by_role("link", name="Mask again").press("Enter")
    expect(page.get_by_text("card •••• 4242")).to_be_visible()
    with pytest.raises(Error, match="ERR_CACHE_MISS"):  # the browser would have to ask for it once more
        page.go_back()


def test_a_session_is_read_while_the_agent_writes(address: str, page: Page, refresh: Callable[[], None]) -> None:
    """Written items appear, and what a person opened stays open; then by keyboard from hit to hit, and to a finding."""
    page.goto(address)
    tool = page.locator("details.tool")
    tool.locator("summary").click()
    expect(page.get_by_text("on its way", exact=False).first).to_be_visible()
    add_items("customer_1", "When does the order arrive?")
    refresh()
    expect(page.get_by_text("When does the order arrive?")).to_be_visible()
    expect(tool).to_have_attribute("open", "")

    page.keyboard.press("f")
    page.keyboard.type("order")
    page.keyboard.press("Enter")
    expect(page.locator(".tl-item.found mark")).to_have_text("order")
    expect(page.locator(".tl-item.found")).to_contain_text("Where is my order?")
    page.get_by_role("link", name="Next match").click()
    # The page has the next hit, and not only no more the one before.
    expect(page.locator(".tl-item.found")).to_contain_text("find_order")
    page.get_by_role("link", name="Next match").click()
    expect(page.locator(".tl-item.found")).to_contain_text("When does the order arrive?")
    page.go_back()
    expect(page.locator(".tl-item.found")).to_contain_text("find_order")

    add_items("customer_1", assistant("Tomorrow."), "Hm", OUTPUT | {"call_id": "call_lost"})
    inspect_session(SessionRecord.objects.select_related("store").get())
    page.goto(address)
    page.keyboard.press("!")
    expect(page.locator(".tl-item.found")).to_contain_text("output without a call")
    expect(page.locator(".tl-item.found")).to_be_in_viewport()


def test_a_long_session_opens_at_its_newest_item_and_does_not_jump(
    address: str, page: Page, refresh: Callable[[], None]
) -> None:
    """New items are announced and reached by one key press, while the item that is read stays where it is."""
    for number in range(6):
        add_items("customer_1", f"Question {number}", *(assistant(f"Answer {place}") for place in range(10)))
    page.goto(address)
    newest = page.get_by_text("Answer 9").last
    expect(newest).to_be_in_viewport()
    news = page.get_by_role("link", name="new item")

    page.locator("details.tool summary").click()
    read = page.locator(".tl-run").nth(3)
    page.evaluate("node => scrollTo({ top: node.offsetTop, behavior: 'instant' })", read.element_handle())
    expect(page.locator("details.tool")).not_to_be_in_viewport()
    before = read.bounding_box()
    add_items("customer_1", "Are you there?", assistant("Yes, I am."), assistant("How can I help?"))
    refresh()
    expect(news).to_have_text("3 new items")
    assert read.bounding_box() == before
    assert_accessible(page)
    news.press("Enter")
    expect(page.get_by_text("How can I help?")).to_be_in_viewport()
    expect(news).to_have_count(0)

    for number in range(6):
        add_items("customer_1", f"Question {number}", *(assistant(f"Answer {place}") for place in range(10)))
    page.goto(f"{address}?start")
    expect(page.get_by_text("Where is my order?")).to_be_in_viewport()
    add_items("customer_1", "Still there?")
    refresh()
    expect(news).to_have_text("1 new item")
    news.click()
    expect(page.locator(".tl-item.found")).to_contain_text("Still there?")
    expect(page.locator(".tl-item.found")).to_be_in_viewport()


def test_a_long_session_is_turned_over_by_keys(address: str, page: Page, look: Look) -> None:
    for number in range(12):
        add_items("customer_1", f"Question {number}", *(assistant(f"Answer {place}") for place in range(20)))
    look(address)
    page.keyboard.press("[")
    page.wait_for_url("**/?at=*")
    page.get_by_role("navigation", name="Pages of this session", exact=True).get_by_role("link", name="Start").click()
    expect(page.get_by_text("Where is my order?")).to_be_in_viewport()
    page.keyboard.press("]")
    page.wait_for_url("**/?at=*")
    page.get_by_role("navigation", name="Pages of this session", exact=True).get_by_role("link", name="End").click()
    expect(page.get_by_text("Question 11")).to_be_visible()
    page.get_by_label("Jump to date").fill("2020-01-01")
    page.get_by_role("button", name="Go").click()
    expect(page.get_by_role("status").filter(has_text="No items on 1 January 2020.")).to_be_visible()


def test_feedback_is_given_and_undone_in_the_timeline(address: str, page: Page, refresh: Callable[[], None]) -> None:
    """The refresh waits while somebody writes, and what they wrote is read by the distiller."""
    page.goto(address)
    page.get_by_role("link", name="Feedback on item").press("Enter")
    note = page.get_by_label("What the agent should do differently")
    expect(note).to_be_focused()
    page.keyboard.type("Say when it arrives.")
    add_items("customer_1", "Hello?")
    refresh()
    expect(note).to_have_value("Say when it arrives.")
    assert_accessible(page)
    page.get_by_role("button", name="Wrong").press("Enter")
    expect(page.locator(".tl-remark")).to_contain_text("Say when it arrives.")
    signal = Signal.objects.get()
    assert (signal.kind, signal.value, signal.text) == ("feedback", -1, "Say when it arrives.")
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert_accessible(page)
        assert_no_sideways_scroll(page)
    page.get_by_role("link", name="Undo").click()
    expect(page.locator(".tl-remark")).to_have_count(0)
    assert not Signal.objects.exists()


def test_a_conversation_is_copied_even_with_an_old_proof(address: str, page: Page, watch: Watch) -> None:
    watch.expect("status of 403")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(address)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "Where is my order?" in page.evaluate("navigator.clipboard.readText()")

    page.evaluate("navigator.clipboard.writeText('')")
    [cookie] = [cookie for cookie in page.context.cookies() if cookie["name"] == "sessionid"]
    session = SessionStore(cookie["value"])
    session["confirmed_at"] -= 301
    session.save()
    page.goto(address)
    page.get_by_role("button", name="Copy").click()
    page.get_by_label("Your password").fill("support")
    page.get_by_role("button", name="Confirm with password").click()
    expect(page.get_by_text("You can download files")).to_be_visible()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "Where is my order?" in page.evaluate("navigator.clipboard.readText()")


def test_a_session_can_be_read_without_javascript(address: str, page: Page, browser: Browser, watch: Watch) -> None:
    [cookie] = [cookie for cookie in page.context.cookies() if cookie["name"] == "sessionid"]
    context = browser.new_context(java_script_enabled=False, base_url=watch.own_address)
    context.add_cookies([{"name": "sessionid", "value": cookie["value"], "url": watch.own_address}])
    plain = context.new_page()
    plain.goto(address)
    plain.locator("details.tool summary").click()
    expect(plain.get_by_text("SO-1").last).to_be_visible()
    plain.get_by_label("Search in this session").fill("on its way")
    plain.get_by_label("Search in this session").press("Enter")
    expect(plain.locator(".tl-item.found")).to_have_count(1)
    expect(plain.get_by_role("button", name="Copy")).to_have_count(0)
    context.close()
