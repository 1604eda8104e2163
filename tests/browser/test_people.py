"""People in a real browser: an account with a role in one form, by keyboard and by mouse, and its first sign-in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from memadmin import audit
from memadmin.accounts.models import Approval
from memadmin.accounts.people import services
from sessions_app.audit_events import SESSION_VIEWED
from tests.accounts.factors import with_app
from tests.approvals import without_triggers
from tests.browser.conftest import Watch, in_all_views
from tests.builders import make_session, make_subject
from tests.people import person, signed_in_by_password

pytestmark = pytest.mark.usefixtures("transactional_db")

SignIn = Callable[..., User]
Look = Callable[..., None]

PEOPLE = reverse("people:list")
GOOD = "f7Hq2pLw9x"
FIREFOX = "Mozilla/5.0 (Android 14; Mobile; rv:130.0) Gecko/130.0 Firefox/130.0"


def test_a_new_account_by_mouse_and_the_person_gets_in(page: Page, sign_in: SignIn, look: Look, watch: Watch) -> None:
    sign_in("administrator")
    page.goto(PEOPLE)
    page.get_by_role("link", name="Invite account").click()
    page.get_by_label("User name").fill("clerk")
    page.get_by_label("E-mail").fill("clerk@example.com")
    page.get_by_text("auditor", exact=True).click()
    page.get_by_role("button", name="Add account").click()
    link = page.get_by_label("Link", exact=True).inner_text()
    expect(page.get_by_text("In effect: auditor given.")).to_be_visible()

    page.context.clear_cookies()
    look(link)
    page.goto(link)
    page.get_by_label("Password", exact=True).fill(GOOD)
    page.get_by_label("Repeat the password").fill(GOOD)
    page.get_by_role("button", name="Set password").click()
    page.get_by_role("link", name="Sign in").click()
    page.get_by_label("User name or e-mail").fill("clerk")
    page.get_by_label("Password").fill(GOOD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.goto(PEOPLE)
    expect(page.get_by_role("row", name="clerk")).to_contain_text("active")
    expect(page.get_by_role("link", name="Invite account")).to_have_count(0)
    watch.expect("410")
    look(link)


def test_roles_confirmed_on_the_page_and_an_account_switched_off(page: Page, sign_in: SignIn) -> None:
    first = sign_in("administrator")
    clerk = person("support")
    page.goto(reverse("people:person", args=[clerk.pk]))
    page.get_by_role("checkbox", name="reviewer").check()
    page.get_by_label("Reason").select_option("staff")
    page.get_by_role("button", name="Change roles").click()
    expect(page.get_by_text("You requested this. Another person has to decide.")).to_be_visible()
    second = User.objects.create_user("second", password="second")
    second.groups.add(Group.objects.get(name="administrator"))
    with without_triggers():
        Approval.objects.update(asked_by=second)
    page.goto(PEOPLE)
    page.get_by_role("link", name="Decide").click()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Confirmed. The role is in effect.")).to_be_visible()
    assert set(clerk.groups.values_list("name", flat=True)) == {"reviewer", "support"}

    page.goto(reverse("people:person", args=[clerk.pk]))
    page.get_by_label("More actions").press("Enter")
    page.get_by_role("link", name="Switch account off").press("Enter")
    page.get_by_label("Reason").select_option("staff")
    page.get_by_role("button", name="Switch account off").press("Enter")
    expect(page.get_by_text("The account is switched off.")).to_be_visible()
    page.goto(reverse("people:person", args=[first.pk]))
    page.get_by_label("More actions").click()
    expect(page.get_by_role("link", name="Switch account off")).to_have_count(0)


@in_all_views
def test_pages_in_all_sizes_and_themes(look: Look, sign_in: SignIn) -> None:
    first = sign_in("administrator")
    second = User.objects.create_user("second", password="second", email="second@example.com")
    second.groups.add(Group.objects.get(name="administrator"))
    clerk = person("support")
    User.objects.filter(pk=clerk.pk).update(email="support-4@example.com", first_name="Ada", last_name="Clerk")
    signed_in_by_password(clerk, **{"User-Agent": FIREFOX})
    with_app(clerk)
    why = audit.Why("staff", "Covers for reviewer-1 until 5 December.")
    roles = Group.objects.filter(name__in=("support", "reviewer"))
    services.change_roles(User.objects.get(pk=clerk.pk), roles, by=second, why=why)
    User.objects.create_user("gone", email="support-2@example.com", is_active=False)
    invited, _ = services.add_person(
        username="reviewer-5", name="", email="reviewer-5@example.com", roles=roles, by=first, why=why
    )
    services.invite(invited, by=first, is_mailed=False, why=why)
    look(PEOPLE, with_shell=True)
    look(f"{PEOPLE}?state=off")
    for each in (clerk, invited, first):
        look(reverse("people:person", args=[each.pk]))
    look(reverse("people:new"))
    look(reverse("people:off", args=[clerk.pk]))
    look(reverse("people:link", args=[clerk.pk]))
    session = make_session(subject=make_subject("cust_48213"), ticket="T-90456")
    for outcome in ("succeeded", "denied"):
        audit.record_alone(
            SESSION_VIEWED,
            by=clerk,
            target=session,
            subject=session.subject,
            counters={"items": 16},
            reason_code="customer_case",
            outcome=outcome,
        )
    sign_in("auditor")
    look(reverse("people:person", args=[clerk.pk]))
    assert Client().get(PEOPLE).status_code == 302
