"""A role in the browser: requested under raw edits, confirmed by another administrator on the page of requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from django.contrib.auth.models import Group, User
from django.urls import reverse
from playwright.sync_api import Page, expect

from memadmin import audit
from memadmin.accounts.models import RoleRequest
from memadmin.accounts.role_requests import services
from memadmin.accounts.role_requests.services import AccountRight
from tests.browser.conftest import say_why

Look: TypeAlias = Callable[[str], None]
SignIn: TypeAlias = Callable[..., User]

ROLES = reverse("accounts:roles")


def test_a_role_is_requested_and_confirmed(transactional_db: None, page: Page, sign_in: SignIn, look: Look) -> None:
    first = sign_in("administrator")
    newcomer = User.objects.create_user("newcomer")
    page.goto(reverse("admin:auth_user_change", args=[newcomer.pk]))
    page.locator("#id_groups_from").select_option(label="support")
    page.get_by_role("button", name="Choose selected roles").click()
    say_why(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Not in effect yet: role support.")).to_be_visible()

    second = User.objects.create_user("second")
    second.groups.add(Group.objects.get(name="administrator"))
    by_second = services.request_role(
        newcomer,
        AccountRight(role=Group.objects.get(name="reviewer")),
        by=second,
        why=audit.Why("staff", "Reviews proposals of the shop from December on."),
    )
    withdrawn = services.request_role(
        newcomer, AccountRight(role=Group.objects.get(name="compliance")), by=first, why=audit.Why("staff")
    )
    services.refuse_role(withdrawn, by=first)
    look(ROLES)
    page.goto(ROLES)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Confirmed. The role is in effect.")).to_be_visible()
    assert RoleRequest.objects.get(pk=by_second.pk, approval__decision="approved")
    assert set(newcomer.groups.values_list("name", flat=True)) == {"reviewer"}
    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_text("No request waits")).to_be_visible()
    look(reverse("sessions:overview"))
