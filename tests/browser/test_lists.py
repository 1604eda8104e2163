"""Sessions, subjects and stores in the browser, by keyboard, by mouse and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any, TypeAlias

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, expect
from pytest_django.live_server_helper import LiveServer

from memadmin.accounts.reauth import CONFIRMED_AT
from memadmin.accounts.session_store import SessionStore
from sessions_app.models import SessionIdPattern, SessionRecord, SubjectKind
from sessions_app.services import subjects
from tests.agents import add_items
from tests.browser.conftest import Look, Watch, in_all_views
from tests.browser.looking import (
    assert_accessible,
    assert_buttons_hold_their_words,
    assert_no_sideways_scroll,
    each_view,
)
from tests.builders import make_session, make_store, make_subject
from tests.people import person
from tests.sessions.stores import stores

__all__ = ["stores"]

SignIn: TypeAlias = Callable[..., User]


@pytest.fixture
def three_sessions(kept_main_store: object) -> list[SessionRecord]:
    """Of a person, of nobody, and one in a store that is away; newest last."""
    add_items("customer_1:ticket_1", "My flight AX 482 was cancelled and I want the refund to my card, not a voucher")
    add_items("kiosk", "Where is my suitcase?")
    SessionRecord.objects.filter(session_id="customer_1:ticket_1").update(
        subject=make_subject("cust_48213"), ticket="T-90417", agent="Refunds", labels=["vip"], finding_count=2
    )
    make_session("away", store=make_store("claims", sessions_table="nowhere", messages_table="nowhere_either"))
    return list(SessionRecord.objects.order_by("last_activity_at"))


class TestLooks:
    @in_all_views
    def test_empty_pages_and_refusals(
        self, transactional_db: None, page: Page, look: Look, watch: Watch, sign_in: SignIn
    ) -> None:
        watch.expect("status of 400")
        sign_in("support")
        for address in ("/sessions/", "/stores/"):
            look(address)
        look("/sessions/?store=nowhere&days=7&cursor=made-up")
        expect(page.get_by_text("This page link is incomplete")).to_be_visible()
        sign_in("auditor")
        look("/", with_shell=True)

    @in_all_views
    def test_pages_with_sessions(self, three_sessions: list[SessionRecord], look: Look, sign_in: SignIn) -> None:
        user = sign_in("support", "administrator")
        subject = three_sessions[0].subject
        assert subject
        subjects.add_alias(subject, kind=SubjectKind.USER, key="L-77120", by=user)
        subjects.merge_subjects(make_subject("kiosk:QX7F2L"), subject, by=user)
        for name, pattern in (("support", "customer_{subject}:ticket_{ticket}"), ("kiosk", "kiosk:{subject}")):
            SessionIdPattern.objects.create(store=three_sessions[0].store, name=name, pattern=pattern)
        # test_connecting.py looks at the list of stores.
        addresses = ("/sessions/?days=30", "/subjects/", subject.get_absolute_url(), "/stores/main/", "/")
        for address in addresses:
            look(address)

    def test_ids_as_long_as_they_can_be(self, kept_main_store: object, page: Page, sign_in: SignIn) -> None:
        """Room does not depend on the theme, nor colours and structure on the length of an id: no axe, by day.

        test_hostile.py looks at lists, subjects and the overview with long words.
        """
        sign_in("support")
        add_items("x" * 10_000, "w" * 10_000)
        add_items("ticket", "Hello")
        subject = make_subject("k" * 512)
        SessionRecord.objects.filter(session_id="ticket").update(
            subject=subject, ticket="t" * 200, agent="a" * 200, labels=["l" * 50]
        )
        longest = SessionRecord.objects.exclude(session_id="ticket").get()
        filtered = f"/sessions/?subject={subject.pk}&agent={'a' * 200}&ticket={'t' * 200}&label={'l' * 50}"
        for address in (filtered, "/sessions/", longest.get_absolute_url()):
            for _ in islice(each_view(page, address), 2):
                assert_no_sideways_scroll(page)
                assert_buttons_hold_their_words(page)


def test_keys(transactional_db: None, stores: dict[str, Any], page: Page, sign_in: SignIn) -> None:
    """Pages are turned, rows walked, ticked one by one and at once."""
    for number in range(60):
        make_session(f"s{number:02}")
    sign_in("support")
    page.goto("/sessions/")
    page.keyboard.press("]")
    expect(page.get_by_role("link", name="Words of s09")).to_be_visible()
    page.keyboard.press("[")
    expect(page.get_by_role("link", name="Words of s59")).to_be_visible()

    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Words of s58")).to_be_focused()
    page.keyboard.press("x")
    expect(page.get_by_role("checkbox", name="Words of s58")).to_be_checked()
    expect(page.locator("#selection")).to_contain_text("1 selected")
    expect(page.locator("tr[aria-selected=true]")).to_contain_text("Words of s58")

    page.get_by_label("Select all on this page").check()
    expect(page.locator("#selection")).to_contain_text("50 selected")
    page.get_by_role("checkbox", name="Words of s59").uncheck()
    expect(page.locator("#selection")).to_contain_text("49 selected")


class TestWork:
    def test_support_works_in_the_list(
        self, three_sessions: list[SessionRecord], page: Page, sign_in: SignIn, watch: Watch
    ) -> None:
        """Labels two sessions, attaches one to a subject made on the way, sees what is newer, and opens a ticket."""
        sign_in("support")
        page.goto("/sessions/")
        page.get_by_role("checkbox", name="Where is my suitcase?").check()
        page.get_by_role("checkbox", name="First words unknown").check()
        page.locator("summary", has_text="Label").click()
        page.get_by_role("textbox", name="Label").fill("urgent")
        page.get_by_role("button", name="Add label").click()
        expect(page.get_by_text("Label “urgent” added to 2 sessions.")).to_be_visible()
        assert SessionRecord.objects.labelled("urgent").count() == 2

        watch.expect("status of 422")
        page.goto("/sessions/")
        page.get_by_role("checkbox", name="Where is my suitcase?").check()
        page.locator("summary", has_text="Attach to subject").click()
        page.get_by_label("ID in the host application").fill("cust_7")
        page.get_by_role("button", name="Attach sessions").click()
        expect(page.get_by_text("There is no subject with the user ID cust_7")).to_be_visible()
        page.get_by_role("button", name="Create subject and attach").click()
        expect(page.get_by_text("1 session attached.")).to_be_visible()
        assert SessionRecord.objects.get(session_id="kiosk").subject == subjects.known_subject("user", "cust_7")

        page.goto("/sessions/")
        add_items("new", "Can I bring my cello as cabin luggage?")
        # What the page does by itself every 15 seconds.
        page.evaluate(
            "htmx.ajax('GET', document.querySelector('[hx-get*=newer]').getAttribute('hx-get'),"
            " {target: '[hx-get*=newer]', swap: 'innerHTML'})"
        )
        expect(page.get_by_text("1 newer")).to_be_visible()
        page.get_by_role("link", name="Show").click()
        expect(page.get_by_role("link", name="Can I bring my cello")).to_be_visible()
        expect(page.get_by_text("1 newer")).to_have_count(0)

        page.locator("summary", has_text="More").click()
        page.get_by_role("textbox", name="Ticket").fill("T-90417")
        page.get_by_role("textbox", name="Ticket").press("Enter")
        expect(page.get_by_role("link", name="Remove filter ticket T-90417")).to_be_visible()
        expect(page.locator("[data-row]")).to_have_count(1)
        page.get_by_role("link", name="My flight AX 482").click()
        expect(page).to_have_url(re.compile(r"/sessions/[0-9a-f-]{36}/$"))

    def test_support_merges_two_subjects_and_undoes_it(self, three_sessions: Any, page: Page, sign_in: SignIn) -> None:
        sign_in("support")
        make_session("of the other", subject=make_subject("kiosk:QX7F2L"))
        page.goto(subjects.known_subject("user", "cust_48213").get_absolute_url())
        page.get_by_text("Merge another subject into this one").click()
        page.locator("#merge-key").fill("kiosk:QX7F2L")
        page.get_by_role("button", name="Merge subjects").click()
        expect(page.get_by_text("merged into this subject")).to_be_visible()
        expect(page.locator("[data-row]")).to_have_count(2)
        page.get_by_role("button", name="Undo the merge of kiosk:QX7F2L").click()
        expect(page.locator("[data-row]")).to_have_count(1)

    def test_an_administrator_tries_a_pattern_and_saves_it(
        self, three_sessions: Any, page: Page, sign_in: SignIn
    ) -> None:
        sign_in("administrator")
        page.goto("/stores/main/")
        page.get_by_role("textbox", name="Pattern").fill("customer_{subject}:ticket_{ticket}")
        page.get_by_role("button", name="Test with 20 sessions").click()
        expect(page.get_by_text("1 of 2")).to_be_visible()
        page.get_by_role("textbox", name="Name").fill("support")
        page.get_by_role("button", name="Save pattern").click()
        expect(
            page.get_by_text("Saved. The pattern is applied to sessions without a subject within seconds.")
        ).to_be_visible()
        assert SessionIdPattern.objects.get().pattern == "customer_{subject}:ticket_{ticket}"


def test_a_subject_is_chosen_by_keyboard_from_a_part_of_an_id(
    three_sessions: list[SessionRecord], page: Page, sign_in: SignIn
) -> None:
    sign_in("support")
    make_subject("cust_482")
    page.goto("/sessions/?days=30")
    page.locator("summary", has_text="More").press("Enter")
    page.get_by_label("Subject", exact=True).fill("cust_4")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Choose a subject")
    assert_accessible(page)
    page.get_by_role("link", name="cust_48213").press("Enter")
    expect(page.locator(".chip")).to_have_text([re.compile("last 30 days"), re.compile("subject cust_48213")])
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "cust" not in page.url


def test_a_session_is_attached_from_its_own_page(three_sessions: Any, page: Page, sign_in: SignIn) -> None:
    sign_in("support")
    make_subject("cust_7")
    record = SessionRecord.objects.get(session_id="kiosk")
    page.goto(record.get_absolute_url())
    page.locator("summary", has_text="Attach to a subject").press("Enter")
    page.get_by_label("ID in the host application").fill("cust_7")
    page.keyboard.press("Enter")
    expect(page.get_by_label("About this session")).to_contain_text("cust_7")
    assert_accessible(page)


def test_sessions_are_labelled_without_javascript(
    three_sessions: Any, browser: Browser, live_server: LiveServer
) -> None:
    client = Client()
    client.force_login(person("support"))
    context = browser.new_context(java_script_enabled=False, base_url=live_server.url)
    context.add_cookies(
        [{"name": "sessionid", "value": client.cookies[settings.SESSION_COOKIE_NAME].value, "url": live_server.url}]
    )
    page = context.new_page()
    page.goto("/sessions/")
    expect(page.get_by_label("Select all on this page")).to_be_hidden()
    page.get_by_role("checkbox", name="Where is my suitcase?").check()
    page.locator("summary", has_text="Label").click()
    page.get_by_role("textbox", name="Label").fill("urgent")
    page.get_by_role("button", name="Add label").click()
    expect(page.get_by_text("Label “urgent” added to 1 session.")).to_be_visible()
    context.close()


def test_times_are_renewed_while_a_page_is_open(
    three_sessions: list[SessionRecord],
    browser: Browser,
    browser_context_args: dict[str, Any],
    context: BrowserContext,
    sign_in: SignIn,
) -> None:
    sign_in("support")
    # Of its own: a clock is installed in all pages of a context, also in those of later tests.
    with browser.new_context(**browser_context_args, storage_state=context.storage_state()) as own:
        page = own.new_page()
        page.clock.install()
        page.goto("/sessions/?q=&days=7")
        seen = page.locator("tbody time[data-ago]").first
        expect(seen).to_have_text("just now")
        page.clock.fast_forward("05:10")
        expect(seen).to_have_text("5 min ago")
        page.clock.fast_forward("02:00:00")
        expect(seen).to_have_text("2 h ago")


def test_palette_opens_a_ticket_by_keyboard_and_by_mouse(
    three_sessions: list[SessionRecord], page: Page, look: Look, sign_in: SignIn
) -> None:
    sign_in("support", "compliance")
    page.goto("/sessions/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Command palette")
    chosen = palette.locator("[aria-selected=true]")
    expect(chosen).to_contain_text("Overview")
    page.keyboard.type("904")
    expect(chosen).to_have_text(re.compile(r"T-90417"))
    page.keyboard.press("ArrowUp")
    expect(palette.locator("[role=option]").last).to_have_attribute("aria-selected", "true")
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("T-90417")
    assert_accessible(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/sessions/\?ticket=T-90417"))

    page.get_by_role("button", name="Command palette").click()
    palette.get_by_role("combobox").fill("hold")
    palette.get_by_role("option", name="Place a hold").click()
    expect(page).to_have_url(re.compile(r"/holds/"))


def test_palette_closes_and_searches_messages_for_what_it_does_not_find(
    three_sessions: list[SessionRecord], page: Page, sign_in: SignIn
) -> None:
    sign_in("support")
    page.goto("/sessions/")
    opener = page.get_by_role("button", name="Command palette")
    opener.press("Enter")
    palette = page.get_by_role("dialog", name="Command palette")
    page.keyboard.press("Escape")
    expect(palette).to_be_hidden()
    expect(opener).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("voucher")
    expect(palette.get_by_text("Nothing found for “voucher”")).to_be_visible()
    assert_accessible(page)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/search/"))


def test_link_to_a_file_asks_for_the_password_on_a_page_and_never_saves_that_page(
    three_sessions: Any, page: Page, sign_in: SignIn
) -> None:
    sign_in("support")
    page.goto("/sessions/")
    (cookie,) = [cookie for cookie in page.context.cookies() if cookie["name"] == settings.SESSION_COOKIE_NAME]
    session = SessionStore(cookie["value"])
    session[CONFIRMED_AT] -= 301
    session.save()
    link = page.get_by_role("link", name="CSV")
    link.press("Enter")
    page.get_by_label("Your password").fill("support")
    page.get_by_role("button", name="Confirm with password").click()
    expect(page.get_by_text("You can download files")).to_be_visible()
    with page.expect_download() as begun:
        link.press("Enter")
    assert begun.value.suggested_filename.startswith("sessions-")
    assert "T-90417" in begun.value.path().read_text()
