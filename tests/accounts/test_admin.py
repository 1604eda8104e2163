"""Accounts in Django admin: an administrator gives roles, and cannot give themselves everything."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from tests.raw_edits import WHY

pytestmark = pytest.mark.django_db


def form_of(user: User, **changes: object) -> dict[str, object]:
    return {"username": user.username, "is_active": "on", **WHY, **changes}


def change(user: User) -> str:
    return reverse("admin:auth_user_change", args=[user.pk])


def test_administrator_gives_a_role(administrator: Client) -> None:
    """One that opens no content; the others are in test_role_requests.py."""
    newcomer = User.objects.create_user("newcomer")
    auditor = Group.objects.get(name="auditor")
    administrator.post(change(newcomer), form_of(newcomer, groups=[auditor.pk]))
    assert list(newcomer.groups.all()) == [auditor]


def test_administrator_makes_no_superuser_and_gives_no_single_permission(administrator: Client) -> None:
    helper = User.objects.get(username="administrator")
    roles = list(helper.groups.values_list("pk", flat=True))
    raw_edit = Permission.objects.get(codename="raw_edit")
    wish = form_of(
        helper, groups=roles, is_superuser="on", is_staff="on", user_permissions=[raw_edit.pk], last_name="Seen"
    )
    assert administrator.post(change(helper), wish).status_code == 302
    helper = User.objects.get(pk=helper.pk)
    assert helper.last_name == "Seen"
    assert not helper.is_superuser
    assert not helper.has_perm("sessions_app.raw_edit")


def test_django_admin_in_our_words_with_our_clock_and_theme(administrator: Client) -> None:
    at = datetime(2026, 11, 26, 15, 4, tzinfo=UTC)
    newcomer = User.objects.create_user("newcomer", last_login=at)
    page = administrator.get(reverse("admin:auth_user_changelist")).text
    assert "26 November 2026, 15:04 UTC" in page
    assert "Select account to change" in page
    assert "Add account" in page
    assert "theme-toggle" not in page
    assert "admin-theme.js" in page
    assert reverse("accounts:logout") in page
    form = administrator.get(change(newcomer)).text
    assert "26 November 2026, 15:04 UTC" in form
    assert "Change account" in form
    index = administrator.get(reverse("admin:index")).text
    assert "Roles" in index
    for word in ("Users", "Groups", "Authentication and Authorization", "Log out", "View site", "Welcome"):
        assert word not in index + form + page


@pytest.mark.parametrize("form", ["auth_user_change", "auth_user_password_change"])
def test_administrator_does_not_touch_a_superuser(administrator: Client, form: str) -> None:
    owner = User.objects.create_superuser("owner", password="owner")
    administrator.post(
        reverse(f"admin:{form}", args=[owner.pk]),
        form_of(owner, username="mine", password1="f7Hq2pLw9x", password2="f7Hq2pLw9x"),
    )
    owner.refresh_from_db()
    assert owner.username == "owner"
    assert owner.check_password("owner")
