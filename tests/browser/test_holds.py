"""Legal holds in a real browser: placed from a subject's page by keyboard, and released by a second person."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils.timezone import now
from playwright.sync_api import Page, expect

from memadmin.retention.holds.services import request_release
from memadmin.retention.models import LegalHold
from tests.browser.conftest import in_all_views
from tests.builders import make_session, make_subject
from tests.people import person
from tests.retention.builders import make_hold, released

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[[str], None]


def test_a_hold_is_placed_and_released_by_keyboard(page: Page, sign_in: SignIn) -> None:
    subject = make_subject("cust_48213")
    sign_in("compliance")
    page.goto(subject.get_absolute_url())
    page.get_by_role("link", name="Place a hold").press("Enter")
    expect(page.get_by_label("ID or label")).to_have_value("cust_48213")
    expect(page.get_by_text("0 sessions and 0 memories would be kept.")).to_be_visible()
    make_session(subject=subject)
    page.get_by_role("button", name="Preview").press("Enter")
    expect(page.get_by_text("1 session and 0 memories would be kept.")).to_be_visible()
    page.get_by_label("Reason").fill("Chargeback 2026-5590, letter of 20 November")
    page.get_by_role("button", name="Place hold").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("H-1 is in force.")
    page.get_by_label("Reason").fill("settled")
    page.get_by_role("button", name="Request release").press("Enter")
    expect(page.get_by_text("You requested this.")).to_be_visible()
    sign_in("compliance", "reviewer")
    page.goto("/holds/")
    page.get_by_role("button", name="Approve release").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("The hold was released.")
    assert LegalHold.objects.get().is_released


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    asked, officer = person("compliance", "reviewer"), sign_in("compliance")
    look("/holds/")
    record = make_session("ticket_T-90456", subject=make_subject("cust_50977"))
    released(make_hold("settled", by=asked, reason="Claim 2025-1177"), by=asked, second=officer)
    hold = make_hold(make_subject("cust_48213"), by=officer, reason="Chargeback 2026-5512, placed by Legal")
    LegalHold.objects.filter(pk=hold.pk).update(review_on=now().date() - timedelta(days=1))
    make_hold(record, by=officer, reason="Supervisory inquiry 7/2026 " + "with many words " * 12)
    waiting = make_hold("dispute", by=officer, reason="Claim 2026-0419")
    request_release(waiting, reason="The claim was settled on 19 November.", by=asked)
    look(f"/holds/?subject={hold.subject_id}")
    look(waiting.get_absolute_url())
    look(hold.get_absolute_url())
