"""Retention policies in a real browser: simulated, proposed and approved by keyboard, and looked at."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from memadmin.retention.models import PolicyVersion
from memadmin.retention.policies.services import end_policy
from sessions_app.models import SessionRecord, SessionStore
from tests.agents import add_items
from tests.browser.conftest import Look, in_all_views
from tests.builders import make_store
from tests.people import person
from tests.retention.builders import make_hold
from tests.retention.policies import age, approve_change, in_force, proposed, swept

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]


def talk(name: str, days: int) -> SessionRecord:
    add_items(name, "Good morning", "The parcel did not come")
    age(name, timedelta(days=days))
    return SessionRecord.objects.get(session_id=name)


def test_a_policy_is_proposed_and_approved_by_keyboard(
    page: Page, sign_in: SignIn, kept_main_store: SessionStore
) -> None:
    record = talk("ticket_T-90456", 200)
    sign_in("compliance")
    page.goto("/")
    page.keyboard.press("g")
    page.keyboard.press("y")
    expect(page.get_by_text("Only the default policy is in force")).to_be_visible()
    page.get_by_role("link", name="New policy").press("Enter")
    page.get_by_label("Name").fill("Closed chats")
    page.get_by_label("After", exact=True).fill("180")
    # Enter in a field simulates, and proposes nothing.
    page.get_by_label("After", exact=True).press("Enter")
    expect(page.get_by_role("heading", name="Simulator: Closed chats")).to_be_visible()
    expect(page.get_by_role("link", name=str(record.pk))).to_be_visible()
    expect(page.locator("canvas")).to_be_visible()
    assert page.evaluate(
        "document.querySelector('canvas').getContext('2d').getImageData(0, 0, 900, 150).data.some(Boolean)"
    )
    page.get_by_label("Reason of the change").fill("Privacy notice of 1 November")
    page.get_by_role("button", name="Propose change").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Another person has to approve it.")
    sign_in("compliance", "reviewer")
    page.goto("/retention/")
    page.get_by_role("link", name="Open and decide").press("Enter")
    page.get_by_label("Name of the policy").fill("Closed chats")
    page.get_by_role("button", name="Approve change").press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The change was approved.")
    page.locator("summary", has_text="Cancel change").press("Enter")
    page.get_by_label("Reason").fill("A claim came in")
    page.get_by_role("button", name="Cancel change").press("Enter")
    expect(page.get_by_text("Cancelled in the grace period by compliance-reviewer")).to_be_visible()
    assert PolicyVersion.objects.get(policy__name="Closed chats").closed_as == "cancelled in the grace period"


def test_the_form_follows_the_target_and_keeps_the_rest(page: Page, sign_in: SignIn) -> None:
    sign_in("compliance")
    page.goto("/retention/new/")
    page.get_by_label("Name").fill("Old preferences")
    page.get_by_label("Note").fill("asked for by the works council")
    page.get_by_label("What", exact=True).select_option("memories")
    expect(page.get_by_label("Status")).to_be_visible()
    expect(page.locator("[name=session_pattern]")).to_have_count(0)
    expect(page.get_by_label("Name")).to_have_value("Old preferences")
    expect(page.get_by_label("Note")).to_have_value("asked for by the works council")
    page.get_by_label("Then").select_option("revalidate")
    page.get_by_label("After", exact=True).fill("180")
    page.get_by_role("button", name="Simulate").press("Enter")
    expect(page.get_by_role("heading", name="Simulator: Old preferences")).to_be_visible()


@pytest.mark.release
def test_without_scripts_the_fields_are_updated_by_a_button(
    browser: Browser, page: Page, sign_in: SignIn, live_server: object
) -> None:
    sign_in("compliance")
    plain = browser.new_context(java_script_enabled=False, base_url=live_server.url)  # type: ignore[attr-defined]
    plain.add_cookies(page.context.cookies())  # type: ignore[arg-type]
    form = plain.new_page()
    form.goto("/retention/new/")
    form.get_by_label("What", exact=True).select_option("memories")
    form.get_by_role("button", name="Update fields").press("Enter")
    expect(form.get_by_label("Status")).to_be_visible()
    plain.close()


@in_all_views
def test_pages_in_all_sizes_and_themes(page: Page, look: Look, sign_in: SignIn, kept_main_store: SessionStore) -> None:
    proposer, officer = person("compliance", "reviewer"), sign_in("compliance")
    look("/retention/")
    for number, days in enumerate((2, 12, 40, 66, 95, 130, 200, 200, 215, 250, 330, 400, 420)):
        record = talk(f"ticket_T-{number}", days)
        if days == 215:
            make_hold(record, by=officer, reason="Chargeback 2026-5512")
            held = record
    make_hold("dispute", by=officer)
    minimum: dict[str, Any] = {
        "minimum_count": 13,
        "minimum_unit": "months",
        "minimum_reference": "Scheme rules of the card networks",
    }
    in_force("Payment disputes", days=None, action="keep", label="dispute", **minimum)
    closed = in_force("Closed tickets", days=365, session_pattern="ticket_*", note="Notice of 1 November")
    in_force("Kiosk chats", days=30, store=make_store("kiosk").name)
    in_force("Preferences", days=180, target="memories", clock="recalled", action="revalidate", kind="preference")
    in_force("Rejected proposals", days=90, target="memories", clock="decided", status="rejected")
    swept()
    for number, days in enumerate((200, 205, 212, 250, 280, 300)):
        talk(f"ticket_U-{number}", days)
    in_force("A policy with a long name that says which conversations of which customers", days=700)
    proposed(closed, by=proposer, days=180, reason="The privacy notice of 1 November says six months.")
    ending = in_force("Bots", days=14, agent="bot")
    approve_change(end_policy(ending.policy, reason="no bots any more", by=officer), by=proposer)
    look(f"/retention/?session={held.pk}#explain")
    look(closed.policy.get_absolute_url())
    look(ending.policy.get_absolute_url())
    look("/retention/new/")
    page.goto(closed.policy.get_absolute_url())
    page.get_by_role("button", name="Simulate").press("Enter")
    expect(page.locator("canvas")).to_be_visible()
    look.here("retention-counted-again")
    page.goto("/retention/new/")
    page.get_by_label("Name").fill("Everything")
    page.locator("[name=session_pattern]").fill("*")
    page.get_by_label("After", exact=True).fill("100")
    page.get_by_role("button", name="Simulate").press("Enter")
    expect(page.locator("canvas")).to_be_visible()
    look.here("retention-simulated")
    kiosk = PolicyVersion.objects.get(policy__name="Kiosk chats")
    look(f"{kiosk.policy.get_absolute_url()}end/")
