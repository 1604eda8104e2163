"""Accounts, with the password of the console's role alone: nobody becomes another person, or gets a right."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse

from memadmin.deploy.roles import Roles
from tests.agents import run_sql
from tests.deploy.connecting import connected_as, refusal
from tests.deploy.test_proven_rows import TRUSTING
from tests.people import person, signed_in, signed_in_by_password

pytestmark = pytest.mark.django_db

FORGERIES = {
    "set a password": "UPDATE auth_user SET password = 'x' WHERE id = {user}",
    "take an address over": "UPDATE auth_user SET email = 'mine@example.invalid' WHERE id = {user}",
    "take a name over": "UPDATE auth_user SET username = 'mine' WHERE id = {user}",
    "switch an account on": "UPDATE auth_user SET is_active = NOT is_active WHERE id = {user}",
    "make a superuser": "UPDATE auth_user SET is_superuser = true WHERE id = {user}",
    "add an account": "INSERT INTO auth_user (username, password, first_name, last_name, email, is_superuser, is_staff,"
    " is_active, date_joined) VALUES ('mine', 'x', '', '', '', true, true, true, now())",
    "give a role": "INSERT INTO auth_user_groups (user_id, group_id) VALUES ({user}, {role})",
    "give a permission": "INSERT INTO auth_user_user_permissions (user_id, permission_id)"
    " SELECT {user}, min(id) FROM auth_permission",
    "let a role do more": "INSERT INTO auth_group_permissions (group_id, permission_id)"
    " SELECT {role}, min(id) FROM auth_permission",
    "invite": "INSERT INTO accounts_invitation (person_id, made_by_id, digest, expires_at)"
    " VALUES ({user}, {user}, 'x', now() + interval '1 day')",
    "know an address": 'INSERT INTO account_emailaddress (user_id, email, verified, "primary")'
    " VALUES ({user}, 'mine@example.invalid', true, true)",
    "link a company account": "INSERT INTO socialaccount_socialaccount (user_id, provider, uid, extra_data, last_login,"
    " date_joined) VALUES ({user}, 'x', 'x', '{{}}', now(), now())",
    "add a second factor": "INSERT INTO mfa_authenticator (user_id, type, data, created_at)"
    " VALUES ({user}, 'totp', '{{}}', now())",
    "let an invitation be used again": "UPDATE accounts_invitation SET used_at = NULL",
    # Roles, factors, approvals and names in the log go by the id.
    "have the id of an administrator": "UPDATE auth_user SET id = 777777 WHERE id = {chief};"
    " UPDATE auth_user SET id = {chief} WHERE id = {user}; UPDATE auth_user SET id = {user} WHERE id = 777777;"
    " SET CONSTRAINTS ALL IMMEDIATE",
    "sign in without a second factor": "DELETE FROM mfa_authenticator",
    "be two people with one address": "DELETE FROM account_emailaddress",
    "have set nobody's password": "UPDATE accounts_accountaccess SET by_id = person_id",
}


@pytest.fixture
def clerk(ours: Roles) -> User:
    return person("support")


@pytest.fixture
def statements(clerk: User) -> dict[str, str]:
    ids = {"user": clerk.pk, "chief": person("administrator").pk, "role": Group.objects.get(name="auditor").pk}
    run_sql(FORGERIES["invite"].format(**ids).replace("'x'", "'used'"))
    return {what: statement.format(**ids) for what, statement in FORGERIES.items()}


@pytest.fixture
def as_web(statements: dict[str, str], ours: Roles) -> Iterator[None]:
    with connected_as(ours["web"]):
        yield


def test_the_password_of_the_role_makes_nobody_another_person(statements: dict[str, str], as_web: None) -> None:
    reasons = {what: refusal(statement) for what, statement in statements.items()}
    assert {what for what, reason in reasons.items() if "actor is not proven" not in reason} == set()


def test_it_is_the_trigger_that_refuses_it(statements: dict[str, str], ours: Roles) -> None:
    run_sql(TRUSTING)
    with connected_as(ours["web"]):
        assert [what for what, statement in statements.items() if refusal(statement)] == []


def test_people_do_the_same_on_pages(clerk: User, ours: Roles) -> None:
    administrator = signed_in(person("administrator"))
    why = {"reason": "staff", "explanation": "New duties."}
    with connected_as(ours["web"]):
        auditor = Group.objects.get(name="auditor")
        support = Group.objects.get(name="support")
        page = administrator.post(reverse("people:roles", args=[clerk.pk]), {"roles": [support.pk, auditor.pk], **why})
        assert page.status_code < 400, page.text
        assert set(clerk.groups.values_list("name", flat=True)) == {"support", "auditor"}
        page = administrator.post(reverse("people:link", args=[clerk.pk]), {"way": "link", **why})
        assert page.status_code == 200, page.text
        clerk.refresh_from_db()
        browser = signed_in_by_password(clerk)
        new = {"oldpassword": "support", "password1": "Zt5vQe8mKd", "password2": "Zt5vQe8mKd"}
        assert browser.post(reverse("account_change_password"), new).status_code == 302
        assert User.objects.get(pk=clerk.pk).check_password("Zt5vQe8mKd")
