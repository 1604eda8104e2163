"""Rights that open content, decide or administer: requested by one administrator, and confirmed by another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import notices
from memadmin.accounts.approvals.services import AlreadyDecided, ApprovalError
from memadmin.accounts.models import RoleRequest
from memadmin.accounts.role_requests import services
from memadmin.accounts.role_requests.services import AccountRight
from memadmin.audit.models import AuditEvent
from tests.approvals import expire, shown
from tests.people import person, signed_in
from tests.raw_edits import WHY

pytestmark = pytest.mark.django_db

WHY_STAFF = audit.Why("staff", "New duties.")
ROLES = reverse("accounts:roles")


@pytest.fixture
def first() -> User:
    return person("administrator")


@pytest.fixture
def second() -> User:
    return an_administrator("second")


def an_administrator(name: str, *, email: str = "", **columns: Any) -> User:
    user = User.objects.create_user(name, email=email, **columns)
    user.groups.add(role("administrator"))
    return user


def role(name: str) -> Group:
    return Group.objects.get(name=name)


def permission(codename: str) -> Permission:
    return Permission.objects.get(codename=codename)


def requested(by: User, name: str = "compliance", *, whom: User | None = None) -> RoleRequest:
    whom = whom or User.objects.create_user("clerk")
    return services.request_role(whom, AccountRight(role=role(name)), by=by, why=WHY_STAFF)


def confirm(request: RoleRequest, *, by: User) -> None:
    services.confirm_role(request, by=by, shown=shown(request))


def decide(by: User, name: str, request: RoleRequest) -> int:
    """The answer to a decision on the page of role requests."""
    sent = signed_in(by).post(reverse(f"accounts:role-{name}", args=[request.pk]), {"shown": shown(request)})
    return sent.status_code


def save(by: User, whom: User, *roles: str, **changes: Any) -> None:
    """The form of an account in Django admin, with these roles."""
    form = {"username": whom.username, "is_active": "on", "groups": [role(name).pk for name in roles], **WHY}
    kept = {name: value for name, value in (form | changes).items() if value is not None}
    response = signed_in(by).post(reverse("admin:auth_user_change", args=[whom.pk]), kept)
    assert response.status_code == 302, response.text


def roles_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def rights_waiting() -> list[str]:
    return [each.right_label for each in RoleRequest.objects.awaiting_decision(now())]


# --- Django admin -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["support", "reviewer", "compliance"])
def test_one_post_gives_an_administrator_nothing(name: str, first: User) -> None:
    save(first, first, "administrator", name)
    assert roles_of(first) == {"administrator"}
    assert rights_waiting() == [name]
    event = AuditEvent.objects.get(type="approval.requested")
    assert (event.reason_code, json.loads(event.detail.details)["right"]) == ("correction", f"role {name}")
    # The same again is the same request.
    save(first, first, "administrator", name)
    assert rights_waiting() == [name]


def test_an_accomplice_does_not_become_administrator_either_and_the_log_role_needs_one_person(first: User) -> None:
    clerk = User.objects.create_user("clerk")
    save(first, clerk, "administrator", "auditor", last_name="Seen")
    clerk.refresh_from_db()
    assert (roles_of(clerk), rights_waiting(), clerk.last_name) == ({"auditor"}, ["administrator"], "Seen")


def test_a_new_account_has_no_role(first: User) -> None:
    form = {"username": "clerk", "password1": "f7Hq2pLw9x", "password2": "f7Hq2pLw9x", "usable_password": "true", **WHY}
    signed_in(first).post(reverse("admin:auth_user_add"), form | {"groups": [role("support").pk], "is_superuser": "on"})
    clerk = User.objects.get(username="clerk")
    assert (roles_of(clerk), clerk.is_superuser) == (set(), False)


def test_rights_are_taken_away_by_one_person(first: User) -> None:
    clerk = person("support", "compliance")
    save(first, clerk, "support")
    assert (roles_of(clerk), rights_waiting()) == ({"support"}, [])


def test_activating_an_account_gives_its_roles_and_disabling_it_keeps_them(first: User) -> None:
    clerk = person("support", "auditor")
    clerk.user_permissions.add(permission("raw_edit"))
    save(first, clerk, "support", "auditor", is_active=None)
    assert roles_of(clerk) == {"support", "auditor"}
    save(first, clerk, "support", "auditor", is_active=None, last_name="Seen")
    assert roles_of(clerk) == {"support", "auditor"}
    save(first, clerk, "support", "auditor")
    clerk = User.objects.get(pk=clerk.pk)
    assert (clerk.is_active, roles_of(clerk), rights_waiting()) == (True, {"auditor"}, ["support"])
    assert not clerk.has_perm("sessions_app.raw_edit")


def test_single_permissions_and_superusers_take_a_second_superuser(first: User) -> None:
    owner, other = (User.objects.create_superuser(name) for name in ("owner", "other"))
    clerk = person("support")
    raw_edit = permission("raw_edit")
    save(owner, clerk, "support", user_permissions=[raw_edit.pk], is_superuser="on")
    clerk = User.objects.get(pk=clerk.pk)
    assert (clerk.is_superuser, clerk.has_perm("sessions_app.raw_edit")) == (False, False)
    assert set(rights_waiting()) == {"sessions_app.raw_edit", "superuser"}
    for request in RoleRequest.objects.all():
        with pytest.raises(ApprovalError, match="superuser"):
            confirm(request, by=first)
        confirm(request, by=other)
    clerk = User.objects.get(pk=clerk.pk)
    assert clerk.is_superuser
    assert clerk.user_permissions.get() == raw_edit


def test_a_role_with_members_gets_no_permission_that_opens_content() -> None:
    owner, auditor = User.objects.create_superuser("owner"), role("auditor")

    def add(codename: str, to: Group) -> set[str]:
        held = set(to.permissions.values_list("pk", flat=True))
        form = {"name": to.name, "permissions": [*held, permission(codename).pk], **WHY}
        signed_in(owner).post(reverse("admin:auth_group_change", args=[to.pk]), form)
        return {codename} & set(to.permissions.values_list("codename", flat=True))

    member = person("auditor")
    assert add("read_content", auditor) == set()
    member.groups.clear()
    assert add("read_content", auditor) == {"read_content"}
    # From now on it takes two people.
    save(owner, member, "auditor")
    assert (roles_of(member), rights_waiting()) == (set(), ["auditor"])
    empty = Group.objects.create(name="readers of the log")
    member.groups.add(empty)
    assert add("view_auditevent", empty) == {"view_auditevent"}


# --- decisions --------------------------------------------------------------------------------------------------------


def test_another_administrator_confirms(first: User, second: User) -> None:
    request = requested(first)
    assert "clerk: compliance" in signed_in(second).get(ROLES).text
    assert decide(second, "confirm", request) == 302
    assert roles_of(request.person) == {"compliance"}
    event = AuditEvent.objects.get(type="role.granted")
    assert event.reason_code == "confirmed"
    assert json.loads(event.detail.details) == {"right": "role compliance", "explanation": "New duties."}
    assert "approved" in signed_in(first).get(ROLES).text


NOT_BY: dict[str, Callable[[User, User], User]] = {
    "the requester": lambda first, clerk: first,
    "the person": lambda first, clerk: clerk,
    "a second account of the requester": lambda first, clerk: an_administrator("double", email="A@example.org"),
    "a second account of the person": lambda first, clerk: an_administrator("double", email="b@example.org"),
    "a disabled administrator": lambda first, clerk: an_administrator("gone", is_active=False),
    "compliance": lambda first, clerk: person("compliance"),
}


@pytest.mark.parametrize("who", NOT_BY)
def test_who_does_not_confirm(who: str, first: User) -> None:
    User.objects.filter(pk=first.pk).update(email="a@example.org")
    clerk = an_administrator("clerk")
    EmailAddress.objects.create(user=clerk, email="B@example.org", verified=True)
    by = NOT_BY[who](first, clerk)
    request = requested(first, "support", whom=clerk)
    with pytest.raises(ApprovalError):
        confirm(request, by=by)
    if by.is_active:
        assert decide(by, "confirm", request) == 403
    assert roles_of(clerk) == {"administrator"}
    assert not AuditEvent.objects.filter(type="role.granted").exists()


def test_a_role_that_got_more_permissions_is_requested_anew(first: User, second: User) -> None:
    request = requested(first)
    before = shown(request)
    assert request.role
    request.role.permissions.add(permission("raw_edit"))
    for digest, sentence in (
        (before, "since you opened the page"),
        (shown(request), "since the approval was requested"),
    ):
        with pytest.raises(ApprovalError, match=sentence):
            services.confirm_role(request, by=second, shown=digest)
    assert roles_of(request.person) == set()


def asked_by(request: RoleRequest) -> User:
    assert request.approval
    assert request.approval.asked_by
    return request.approval.asked_by


MEANWHILE: dict[str, Callable[[RoleRequest], object]] = {
    "the requester lost the right": lambda request: asked_by(request).groups.clear(),
    "the requester was disabled": lambda request: User.objects.filter(pk=asked_by(request).pk).update(is_active=False),
    "the person was disabled": lambda request: User.objects.filter(pk=request.person_id).update(is_active=False),
    "it expired": expire,
    "another rejected it": lambda request: services.refuse_role(request, by=an_administrator("third")),
    "its requester withdrew it": lambda request: services.refuse_role(request, by=asked_by(request)),
}


@pytest.mark.parametrize("case", MEANWHILE)
def test_what_happened_meanwhile_stops_it(case: str, first: User, second: User) -> None:
    request = requested(first)
    request.refresh_from_db()
    MEANWHILE[case](request)
    with pytest.raises(ApprovalError):
        confirm(request, by=second)
    assert roles_of(request.person) == set()
    assert not AuditEvent.objects.filter(type="role.granted").exists()


def test_two_decisions_are_one(first: User, second: User) -> None:
    request = requested(first)
    as_both_see_it = RoleRequest.objects.get(pk=request.pk), RoleRequest.objects.get(pk=request.pk)
    confirm(as_both_see_it[0], by=second)
    third = an_administrator("third")
    with pytest.raises(AlreadyDecided):
        confirm(as_both_see_it[1], by=third)
    for name in ("confirm", "refuse"):
        assert decide(third, name, request) == 409
    assert AuditEvent.objects.filter(type="role.granted").count() == 1
    assert roles_of(request.person) == {"compliance"}


def test_an_expired_request_is_requested_anew(first: User) -> None:
    request = requested(first)
    request.refresh_from_db()
    expire(request)
    again = requested(first, whom=request.person)
    assert again.pk != request.pk
    assert "expired" in signed_in(first).get(ROLES).text


# --- the operator's command, and notices ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("compliance", "accounts.decide_grant"),
        ("sessions_app.raw_edit", "sessions_app.raw_edit"),
        ("superuser", "auth.delete_user"),
    ],
)
def test_an_operator_gives_a_right_where_there_is_one_administrator(
    name: str, allowed: str, first: User, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("grant_role", first.username, name, "--reason", "Only one administrator here.")
    assert User.objects.get(pk=first.pk).has_perm(allowed)
    assert "administrator now has" in capsys.readouterr().out
    event = AuditEvent.objects.get(type="role.granted")
    assert event.reason_code == "operator"
    assert json.loads(event.detail.details)["explanation"] == "Only one administrator here."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nobody", "support", "--reason", "x"], "There is no user nobody."),
        (["administrator", "king", "--reason", "x"], "There is no role or permission king."),
        (["administrator", "support"], "--reason"),
    ],
)
def test_a_command_that_gives_nothing(arguments: list[str], sentence: str, first: User) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("grant_role", *arguments)
    assert roles_of(first) == {"administrator"}


def test_compliance_is_notified_at_once(first: User, second: User, compliance: Client) -> None:
    officer = User.objects.get(username="compliance")
    EmailAddress.objects.create(user=officer, email="officer@example.org", verified=True, primary=True)
    confirm(requested(first), by=second)
    (due,) = notices.due_at(now())
    assert (due.kind, notices.recipients_of(due)) == (notices.Kind.ROLE, ["officer@example.org"])
    mail = notices.mail_about(due, ["officer@example.org"])
    assert mail.subject == "memadmin: A person got a role"
    assert "clerk" not in mail.body
    assert "1 role granted in 7 days" in compliance.get(reverse("sessions:overview")).text


def test_administrators_see_that_a_request_waits(first: User, second: User) -> None:
    requested(first)
    assert "1 role request to decide" in signed_in(second).get(reverse("sessions:overview")).text
    assert "to decide" not in signed_in(first).get(reverse("sessions:overview")).text


# --- accounts that another person could use ---------------------------------------------------------------------------


def set_password(by: User, whom: User) -> None:
    new = {"password1": "f7Hq2pLw9x", "password2": "f7Hq2pLw9x", "usable_password": "true", **WHY}
    signed_in(by).post(reverse("admin:auth_user_password_change", args=[whom.pk]), new)


def reset_factor(by: User, whom: User) -> None:
    signed_in(by).post(reverse("admin:auth_user_reset_second_factor", args=[whom.pk]), WHY)


def change_address(by: User, whom: User) -> None:
    save(by, whom, "auditor", "compliance", email="mine@example.invalid")


@pytest.mark.parametrize("take_over", [set_password, reset_factor, change_address])
def test_whoever_could_sign_in_as_a_person_gets_none_of_their_rights(
    take_over: Callable[[User, User], None], first: User, second: User
) -> None:
    officer = person("auditor", "compliance")
    take_over(first, officer)
    assert (roles_of(officer), rights_waiting()) == ({"auditor"}, ["compliance"])
    with pytest.raises(ApprovalError):
        confirm(RoleRequest.objects.get(), by=first)
    confirm(RoleRequest.objects.get(), by=second)
    assert roles_of(officer) == {"auditor", "compliance"}


def test_a_password_that_is_not_saved_and_ones_own_take_nothing(first: User) -> None:
    officer = person("compliance")
    bad = {"password1": "one", "password2": "other", "usable_password": "true", **WHY}
    signed_in(first).post(reverse("admin:auth_user_password_change", args=[officer.pk]), bad)
    set_password(first, first)
    assert (roles_of(officer), roles_of(first), rights_waiting()) == ({"compliance"}, {"administrator"}, [])


def test_whoever_set_a_password_confirms_nothing_for_that_account_until_the_person_changed_it(
    first: User, second: User
) -> None:
    third = an_administrator("third")
    clerk = User.objects.create_user("clerk", password="clerk")
    waiting = requested(second, whom=clerk)
    set_password(first, clerk)
    with pytest.raises(ApprovalError, match="You set the password"):
        confirm(waiting, by=first)
    clerk.refresh_from_db()
    browser = signed_in(clerk)
    new = {"oldpassword": "f7Hq2pLw9x", "password1": "Zt5vQe8mKd", "password2": "Zt5vQe8mKd"}
    assert browser.post(reverse("account_change_password"), new).status_code == 302
    confirm(waiting, by=first)
    assert roles_of(clerk) == {"compliance"}
    # A disabled account keeps its roles, and loses nothing by a password: activating it requests them.
    disabled = person("support")
    User.objects.filter(pk=disabled.pk).update(is_active=False)
    set_password(first, disabled)
    disabled.refresh_from_db()
    save(second, disabled, "support")
    activating = RoleRequest.objects.get(person=disabled)
    with pytest.raises(ApprovalError):
        confirm(activating, by=first)
    confirm(activating, by=third)
    assert roles_of(disabled) == {"support"}
