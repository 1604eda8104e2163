"""Django admin obeys the same policy as every page: the watch fails a test at the first violation."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.agents import make_agent_tables


def test_every_list_and_form_works_under_the_policy(
    agent_tables: None, page: Page, sign_in: Callable[..., User]
) -> None:
    make_agent_tables()
    everything = sign_in("administrator")
    User.objects.filter(pk=everything.pk).update(is_superuser=True)
    page.goto("/admin/")
    for model in admin.site._registry:
        page.goto(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"))
        expect(page.locator("#content")).to_be_visible()
        if page.locator(".object-tools .addlink").count():
            page.goto(reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_add"))
            expect(page.locator("#content-main form")).to_be_visible()


def test_administrator_adds_somebody_to_a_role(page: Page, sign_in: Callable[..., User]) -> None:
    sign_in("administrator")
    newcomer = User.objects.create_user("newcomer")
    page.goto(reverse("admin:auth_user_change", args=[newcomer.pk]))
    page.locator("#id_groups_from").select_option(label="support")
    page.get_by_role("button", name="Choose selected groups").click()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    assert newcomer.has_perm("sessions_app.read_content")
