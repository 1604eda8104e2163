"""The jobs of each role by keyboard and by mouse, in the page loads, clicks and keys that docs/jobs.md says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, TypeAlias

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin import audit
from memadmin.accounts.models import RoleRequest
from memadmin.erasure.models import SubjectRequest
from memadmin.retention.models import LegalHold
from memories_app.models import Memory
from sessions_app.audit_events import SESSION_VIEWED, SESSIONS_ATTACHED
from sessions_app.models import SessionRecord, SessionStore
from sessions_app.services.sessions import attach_sessions
from tests.agents import add_items, assistant
from tests.browser.conftest import Watch
from tests.browser.playing import Played
from tests.builders import make_session, make_subject
from tests.memories.builders import user_quote
from tests.memories.queue import waiting
from tests.people import person
from tests.retention.policies import in_force

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn: TypeAlias = Callable[..., User]
Way = Literal["keyboard", "mouse"]

both_ways = pytest.mark.parametrize("way", ["keyboard", pytest.param("mouse", marks=pytest.mark.release)])


@pytest.fixture
def played(page: Page) -> Played:
    return Played(page)


@both_ways
def test_from_a_ticket_to_what_the_assistant_promised(
    kept_main_store: SessionStore, page: Page, sign_in: SignIn, played: Played, way: Way
) -> None:
    sign_in("support")
    for number in range(8):
        add_items("customer_1", f"Question {number}", *(assistant(f"Answer {place}") for place in range(20)))
    add_items("customer_1", "When is the refund there?", assistant("The refund of 418.60 EUR arrives within 7 days."))
    add_items("customer_2", "Another ticket")
    SessionRecord.objects.filter(session_id="customer_1").update(ticket="T-90417")
    played.start("/")
    if way == "keyboard":
        played.press("/")
    else:
        played.click(page.get_by_role("searchbox").first)
    played.type("90417")
    played.press("Enter")
    expect(page.get_by_text("The refund of 418.60 EUR arrives within 7 days.")).to_be_in_viewport()
    played.assert_as_documented("A ticket number to what the assistant promised", way)


@both_ways
def test_who_read_the_sessions_of_a_person(page: Page, sign_in: SignIn, played: Played, way: Way) -> None:
    subject, other = make_subject("cust_48213"), make_subject("cust_1")
    helper, session = person("support"), make_session(subject=subject)
    for items in (5, 56):
        audit.record_alone(
            SESSION_VIEWED,
            by=helper,
            target=session,
            subject=subject,
            counters={"items": items},
            reason_code="customer_case",
        )
    audit.record_alone(SESSIONS_ATTACHED, by=helper, subject=subject, counters={"sessions": 1})
    audit.record_alone(SESSION_VIEWED, by=helper, target=make_session(), subject=other, counters={"items": 9})
    sign_in("auditor")
    played.start("/")
    box = page.get_by_role("searchbox", name="Find events by subject")
    event = page.get_by_label("Event", exact=True)
    if way == "keyboard":
        played.press("/")
        expect(box).to_be_focused()
        played.type("cust_48213")
        played.press("Enter")
        expect(page.get_by_role("link", name="Remove filter about subject")).to_be_visible()
        played.skip_to_content()
        played.tab_to(event)
        played.type("Reading")
        played.press("Shift+Tab", "Enter")
    else:
        played.click(box)
        played.type("cust_48213")
        played.press("Enter")
        expect(page.get_by_role("link", name="Remove filter about subject")).to_be_visible()
        played.choose(event, "Reading")
        played.click(page.get_by_role("button", name="Apply"))
    expect(page.get_by_role("link", name="Remove filter about subject")).to_be_visible()
    rows = page.locator("[data-row]", has_text="session.viewed")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("support read 56 items of session")
    expect(rows.first).to_contain_text("customer support")
    expect(page.locator("[data-row]", has_text="attached")).to_have_count(0)
    assert "cust_48213" not in page.url
    played.assert_as_documented("Who read the sessions of a person", way)


def proposals(count: int) -> list[Memory]:
    found = [waiting(f"Prefers seat {number}.") for number in range(count)]
    for memory in found:
        user_quote(memory)
    return found


@pytest.mark.release
@both_ways
def test_ten_proposals_are_approved_after_reading(
    page: Page, sign_in: SignIn, played: Played, settings: Any, way: Way
) -> None:
    settings.REVIEW_AFTER = timedelta(milliseconds=1)
    ten = proposals(10)
    sign_in("reviewer")
    played.start("/")
    heading = page.get_by_role("heading", level=1)
    if way == "keyboard":
        played.press("g", "r")
        page.wait_for_url(f"**{reverse('reviews:list')}")
        played.press("j", "Enter")
    else:
        played.click(page.get_by_role("navigation", name="Sections").get_by_role("link", name="Review queue"))
        played.click(page.get_by_role("link", name=ten[0].statement))
    for memory in ten:
        expect(heading).to_have_text(memory.statement)
        played.wait_for_htmx()
        if way == "keyboard":
            played.press("a")
        else:
            played.click(page.get_by_role("button", name="Approve", exact=False).first)
    expect(page.locator("#main")).to_contain_text("No proposals waiting")
    assert Memory.objects.filter(status="approved").count() == 10
    played.assert_as_documented("Ten proposals approved, each after reading it", way)


@both_ways
def test_ten_proposals_are_not_decided_unread(
    page: Page, sign_in: SignIn, settings: Any, watch: Watch, way: Way
) -> None:
    watch.expect("422")
    settings.REVIEW_AFTER = timedelta(hours=1)
    ten = proposals(10)
    sign_in("reviewer")
    page.goto(reverse("reviews:review", args=[ten[0].pk]))
    box = page.get_by_role("button", name="Approve", exact=False).first.bounding_box()
    assert box
    for _ in range(10):
        if way == "keyboard":
            page.keyboard.press("a")
        else:
            # At the place of the button, whatever is there after the first click.
            page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    # In another tab: the last click may still lead this one somewhere.
    queue = page.context.new_page()
    queue.goto(reverse("reviews:list"))
    expect(queue.get_by_role("link", name=ten[0].statement)).to_be_visible()
    assert Memory.objects.filter(status="proposed").count() == 10


@pytest.mark.release
@both_ways
def test_an_account_with_a_role_in_one_form(page: Page, sign_in: SignIn, played: Played, way: Way) -> None:
    sign_in("administrator")
    played.start("/")
    name, mail = page.get_by_label("User name"), page.get_by_label("E-mail")
    role, done = page.get_by_role("checkbox", name="support"), page.get_by_role("button", name="Add account")
    invite = page.get_by_role("link", name="Invite account")
    if way == "keyboard":
        played.press("g", "l")
        expect(invite).to_be_visible()
        played.skip_to_content()
        played.tab_to(invite)
        played.press("Enter")
        expect(name).to_be_focused()
        played.type("clerk")
        played.tab_to(mail)
        played.type("clerk@example.com")
        played.tab_to(role)
        played.press("Space", "Enter")
    else:
        played.click(page.get_by_role("navigation", name="Sections").get_by_role("link", name="People"))
        played.click(invite)
        played.click(name)
        played.type("clerk")
        played.click(mail)
        played.type("clerk@example.com")
        played.click(page.get_by_text("support", exact=True))
        played.click(done)
    expect(page.get_by_role("heading", name="Link for clerk")).to_be_visible()
    assert [each.right_label for each in RoleRequest.objects.all()] == ["support"]
    played.assert_as_documented("A new account with a role", way)


@pytest.mark.release
@both_ways
def test_an_erasure_request_up_to_the_approval(
    kept_main_store: SessionStore, page: Page, sign_in: SignIn, played: Played, way: Way
) -> None:
    officer = sign_in("compliance")
    subject = make_subject("cust_48213")
    add_items("chat_1", "Where is my order?")
    attach_sessions(SessionRecord.objects.filter(session_id="chat_1"), subject, by=officer)
    played.start(subject.get_absolute_url())
    new, ground = page.get_by_role("link", name="New request"), page.get_by_label("Ground of an erasure")
    opened = page.get_by_role("button", name="Open case")
    how, checked = page.get_by_label("How it was checked"), page.get_by_role("button", name="Identity is checked")
    count, ask = (
        page.get_by_role("button", name="Count", exact=True),
        page.get_by_role("button", name="Ask for approval"),
    )
    if way == "keyboard":
        played.skip_to_content()
        played.tab_to(new)
        played.press("Enter")
        expect(ground).to_be_visible()
        played.skip_to_content()
        played.tab_to(ground)
        played.type("consent")
        played.tab_to(opened)
        played.press("Enter")
        expect(how).to_be_visible()
        played.skip_to_content()
        played.tab_to(how)
        played.type("called back")
        played.tab_to(checked)
        played.press("Enter")
        expect(page.get_by_text("approval needs a preview")).to_be_visible()
        played.skip_to_content()
        played.tab_to(count)
        played.press("Enter")
        expect(page.get_by_role("row", name="main")).to_be_visible()
        played.skip_to_content()
        played.tab_to(ask)
        played.press("Enter")
    else:
        played.click(new)
        ground.select_option("consent")
        played.clicks += 2
        played.click(opened)
        played.click(how)
        played.type("called back")
        played.click(checked)
        played.click(count)
        expect(page.get_by_role("row", name="main")).to_be_visible()
        played.click(ask)
    expect(page.get_by_text("You requested this. Another person has to decide.")).to_be_visible()
    assert SubjectRequest.objects.get().state == SubjectRequest.State.AWAITING
    played.assert_as_documented("An erasure request up to the approval", way)


@both_ways
def test_why_a_session_is_still_here(page: Page, sign_in: SignIn, played: Played, way: Way) -> None:
    make_session("ticket_T-90456", ticket="T-90456", last_activity_at=now() - timedelta(days=10))
    in_force("Chats", days=30)
    sign_in("compliance")
    played.start("/")
    words = page.get_by_label("Ticket, session ID or UUID")
    if way == "keyboard":
        played.press("g", "y")
        expect(words).to_be_visible()
        played.skip_to_content()
        played.tab_to(words)
        played.type("T-90456")
        played.press("Enter")
    else:
        played.click(page.get_by_role("navigation", name="Sections").get_by_role("link", name="Retention"))
        played.click(words)
        played.type("T-90456")
        played.click(page.get_by_role("button", name="Explain"))
    expect(page.locator("#explanation")).to_contain_text("policy Chats, 30 days after last activity")
    played.assert_as_documented("Why a session is still here, and when it goes", way)


@pytest.mark.release
@both_ways
def test_a_legal_hold_is_placed(page: Page, sign_in: SignIn, played: Played, way: Way) -> None:
    subject = make_subject("cust_48213")
    sign_in("compliance")
    played.start(subject.get_absolute_url())
    place, reason = page.get_by_role("link", name="Place a hold"), page.get_by_label("Reason")
    if way == "keyboard":
        played.skip_to_content()
        played.tab_to(place)
        played.press("Enter")
        expect(reason).to_be_visible()
        played.skip_to_content()
        played.tab_to(reason)
        played.type("Chargeback 5590")
        played.tab_to(page.get_by_role("button", name="Place hold"))
        played.press("Enter")
    else:
        played.click(place)
        played.click(reason)
        played.type("Chargeback 5590")
        played.click(page.get_by_role("button", name="Place hold"))
    expect(page.get_by_role("status")).to_contain_text("H-1 is in force.")
    assert LegalHold.objects.get()
    played.assert_as_documented("A legal hold placed on a subject", way)
