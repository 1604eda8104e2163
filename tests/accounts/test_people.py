"""People: accounts added, invited, given roles, switched off and on, by administrators; auditors look."""

from __future__ import annotations

import json

import pytest
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.models import AccountAccess, Invitation, RoleRequest
from memadmin.accounts.people import services
from memadmin.accounts.role_requests.services import AccountRight, confirm_role, request_role
from memadmin.audit.models import AuditEvent
from tests.accounts.factors import let_proof_age, with_app
from tests.approvals import shown
from tests.people import person, signed_in, signed_in_by_password

pytestmark = pytest.mark.django_db

PEOPLE, NEW = reverse("people:list"), reverse("people:new")
STAFF = {"reason": "staff", "explanation": ""}
WHY = audit.Why("staff", "New duties.")


def role(name: str) -> Group:
    return Group.objects.get(name=name)


def roles_of(user: User) -> set[str]:
    return set(user.groups.values_list("name", flat=True))


def waiting_for(user: User) -> set[str]:
    return {each.right_label for each in RoleRequest.objects.awaiting_decision(now()).filter(person=user)}


def at(name: str, user: User) -> str:
    return reverse(f"people:{name}", args=[user.pk])


def event(type: str) -> AuditEvent:
    return AuditEvent.objects.get(type=type)


def another_administrator(name: str = "second") -> User:
    user = User.objects.create_user(name, password=name)
    user.groups.add(role("administrator"))
    return user


def new(**changes: object) -> dict[str, object]:
    return {"username": "clerk", "name": "Ada Clerk", "email": "clerk@example.com", "way": "link", **changes}


# --- the list ---------------------------------------------------------------------------------------------------------


def test_the_list_shows_accounts_with_role_factor_session_and_state(administrator: Client, outsider: Client) -> None:
    reader = person("support", "reviewer")
    signed_in_by_password(reader)
    with_app(reader)
    off = User.objects.create_user("gone", is_active=False)
    page = administrator.get(PEOPLE).text
    assert outsider.get(PEOPLE).status_code == 403
    assert at("person", reader) in page
    assert at("person", off) in page
    rows = {row.user.username: row for row in administrator.get(PEOPLE).context["rows"]}
    shown = rows["support-reviewer"]
    assert (shown.roles, shown.factors, shown.open_count) == (["reviewer", "support"], ["app"], 1)
    assert (rows["gone"].state.word, rows["gone"].open_count) == ("switched off", 0)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("role=support", {"support"}),
        ("state=off", {"gone"}),
        ("state=invited&factor=none", {"support"}),
        ("factor=some", set()),
    ],
)
def test_filters(administrator: Client, query: str, expected: set[str]) -> None:
    person("support")
    User.objects.create_user("gone", is_active=False)
    rows = administrator.get(f"{PEOPLE}?{query}").context["rows"]
    assert {row.user.username for row in rows} - {"administrator"} == expected


def test_an_unknown_filter_shows_nobody(administrator: Client) -> None:
    answer = administrator.get(f"{PEOPLE}?role=none")
    assert (answer.status_code, answer.context["rows"]) == (400, [])


def test_a_name_is_searched_by_post(administrator: Client) -> None:
    person("support")
    User.objects.create_user("somebody", email="Ada@example.com")
    rows = administrator.post(PEOPLE, {"q": "ada@"}).context["rows"]
    assert [row.user.username for row in rows] == ["somebody"]


def test_what_a_role_may_do_comes_from_the_database(administrator: Client) -> None:
    def has(label: str) -> list[bool]:
        table = administrator.get(PEOPLE).context["role_table"]
        return next(list(has) for group in table for right, has in group.rights if right == label)

    assert has("Verify the audit log") == [False, False, True, True, False]
    role("support").permissions.add(*role("auditor").permissions.all())
    assert has("Verify the audit log") == [True, False, True, True, False]


def test_rights_keep_their_capitals(administrator: Client) -> None:
    table = administrator.get(PEOPLE).context["role_table"]
    rights = {right for group in table for right, _ in group.rights}
    assert "Allow a new start under an erased ID" in rights
    assert any("session ID pattern" in right for right in rights)


def test_an_auditor_looks_and_changes_nothing(client_of_auditor: Client) -> None:
    whom = person("support")
    assert client_of_auditor.get(PEOPLE).status_code == 200
    page = client_of_auditor.get(at("person", whom))
    assert page.status_code == 200
    assert "<form" not in page.text.split('id="main"')[1].split("</main>")[0]
    for name in ("off", "second-factor", "link"):
        assert client_of_auditor.get(at(name, whom)).status_code == 403
    assert client_of_auditor.post(at("roles", whom), STAFF).status_code == 403
    assert client_of_auditor.post(at("sign-out", whom)).status_code == 403
    assert client_of_auditor.post(NEW, new()).status_code == 403


@pytest.fixture
def client_of_auditor() -> Client:
    return signed_in(person("auditor"))


# --- a new account ----------------------------------------------------------------------------------------------------


def test_one_form_adds_an_account_and_its_role_waits_for_another_administrator(administrator: Client) -> None:
    by = User.objects.get(username="administrator")
    page = administrator.post(NEW, new(roles=[role("support").pk, role("auditor").pk], explanation="From Monday on."))
    assert page.status_code == 200
    clerk = User.objects.get(username="clerk")
    assert (clerk.get_full_name(), clerk.email, clerk.has_usable_password()) == (
        "Ada Clerk",
        "clerk@example.com",
        False,
    )
    assert (roles_of(clerk), waiting_for(clerk)) == ({"auditor"}, {"support"})
    assert RoleRequest.objects.get().explanation == "From Monday on."
    assert reverse("accounts:invitation", args=["x"]).removesuffix("x/") in page.context["link"]
    assert page.context["link"] in page.text
    # Whoever saw the link does not confirm the role.
    assert AccountAccess.objects.filter(person=clerk, by=by).exists()
    assert event("person.added").reason_code == "staff"
    assert event("person.invited").reason_code == "shown"
    assert event("approval.requested").reason_code == "staff"
    assert json.loads(event("role.given").detail.details)["right"] == "role auditor"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"username": ""}, "Enter a user name."),
        ({"username": "ADMINISTRATOR"}, "Another account has this user name."),
        ({"email": "no address"}, "Enter an address such as name@example.com."),
        ({"email": "Taken@example.com"}, "Another account has this address."),
        ({"way": "mail"}, "Choose one of the ways."),
        ({"roles": ["999999"]}, "There is no such role."),
    ],
)
def test_a_wrong_form_adds_nothing(administrator: Client, changes: dict[str, object], problem: str) -> None:
    User.objects.create_user("other", email="taken@example.com")
    answer = administrator.post(NEW, new(**changes))
    assert answer.status_code == 422
    assert problem in answer.text
    assert not User.objects.filter(username="clerk").exists()


# --- roles ------------------------------------------------------------------------------------------------------------


def test_roles_are_taken_at_once_and_given_through_requests(administrator: Client) -> None:
    clerk = person("support")
    wanted = [role("reviewer").pk, role("auditor").pk]
    administrator.post(at("roles", clerk), {"roles": wanted, **STAFF})
    assert (roles_of(clerk), waiting_for(clerk)) == ({"auditor"}, {"reviewer"})
    assert json.loads(event("role.taken").detail.details)["right"] == "role support"


def test_roles_need_a_reason(administrator: Client) -> None:
    clerk = person("support")
    assert administrator.post(at("roles", clerk), {"roles": []}).status_code == 422
    assert roles_of(clerk) == {"support"}


def test_an_administrator_gives_themselves_nothing_and_does_not_confirm_it(administrator: Client) -> None:
    by = User.objects.get(username="administrator")
    wanted = [role("administrator").pk, role("compliance").pk]
    administrator.post(at("roles", by), {"roles": wanted, **STAFF})
    assert (roles_of(by), waiting_for(by)) == ({"administrator"}, {"compliance"})
    request = RoleRequest.objects.get()
    administrator.post(reverse("accounts:role-confirm", args=[request.pk]), {"shown": shown(request)})
    assert roles_of(by) == {"administrator"}


def test_the_last_administrator_keeps_the_role(administrator: Client) -> None:
    by = User.objects.get(username="administrator")
    # Does not count: this one cannot sign in.
    User.objects.create_user("invited").groups.add(role("administrator"))
    answer = administrator.post(at("roles", by), {"roles": [], **STAFF})
    assert answer.status_code == 409
    assert "Nobody else could administer accounts then." in answer.text
    assert roles_of(by) == {"administrator"}
    another_administrator()
    administrator.post(at("roles", by), {"roles": [], **STAFF})
    assert roles_of(by) == set()


def test_an_administrator_does_not_touch_a_superuser(administrator: Client) -> None:
    owner = User.objects.create_superuser("owner", password="owner")
    assert administrator.get(at("person", owner)).status_code == 200
    for name in ("roles", "off", "second-factor", "link", "sign-out"):
        assert administrator.post(at(name, owner), STAFF).status_code == 404
    owner.refresh_from_db()
    assert owner.is_active


# --- off and on -------------------------------------------------------------------------------------------------------


def test_switching_off_ends_sessions_and_links_and_keeps_roles(administrator: Client) -> None:
    clerk = person("support")
    browser = signed_in_by_password(clerk)
    services.invite(clerk, by=another_administrator(), is_mailed=False, why=WHY)
    clerk.groups.add(role("support"))
    administrator.post(at("off", clerk), STAFF)
    clerk.refresh_from_db()
    assert (clerk.is_active, roles_of(clerk)) == (False, {"support"})
    assert not UserSession.objects.filter(user=clerk).exists()
    assert not Invitation.objects.filter(person=clerk, used_at=None).exists()
    assert browser.get(reverse("accounts:account")).status_code == 302
    assert event("person.switched_off").reason_code == "staff"


def test_switching_on_requests_guarded_rights_again(administrator: Client) -> None:
    clerk = person("support", "auditor")
    User.objects.filter(pk=clerk.pk).update(is_active=False)
    administrator.post(at("on", clerk), STAFF)
    clerk.refresh_from_db()
    assert (clerk.is_active, roles_of(clerk), waiting_for(clerk)) == (True, {"auditor"}, {"support"})


def test_nobody_switches_their_own_account_off(administrator: Client) -> None:
    another_administrator()
    by = User.objects.get(username="administrator")
    assert administrator.post(at("off", by), STAFF).status_code == 409
    by.refresh_from_db()
    assert by.is_active


def test_raw_edits_leave_an_administrator_too(administrator: Client) -> None:
    by = User.objects.get(username="administrator")
    form = {"username": by.username, "why-reason": "correction", "why-explanation": ""}
    for kept in ({"is_active": "on"}, {"groups": [role("administrator").pk]}):
        page = administrator.post(reverse("admin:auth_user_change", args=[by.pk]), form | kept, follow=True)
        assert "Nobody else could administer accounts then." in page.text
        by.refresh_from_db()
        assert (by.is_active, roles_of(by)) == (True, {"administrator"})


# --- second factor, links, sessions -----------------------------------------------------------------------------------


def test_a_reset_takes_the_guarded_roles_until_another_administrator_confirms_them(administrator: Client) -> None:
    clerk = person("support")
    with_app(clerk)
    administrator.post(at("second-factor", clerk), STAFF)
    assert not Authenticator.objects.filter(user=clerk).exists()
    assert (roles_of(clerk), waiting_for(clerk)) == (set(), {"support"})
    assert event("second_factor.reset").reason_code == "staff"


def test_a_link_that_is_shown_takes_the_guarded_roles(administrator: Client) -> None:
    clerk = person("support")
    page = administrator.post(at("link", clerk), {"way": "link", **STAFF})
    assert page.context["taken"] == ["role support"]
    assert (roles_of(clerk), waiting_for(clerk)) == (set(), {"support"})


def test_whoever_saw_the_link_does_not_confirm_what_a_third_requested(administrator: Client) -> None:
    by, third = User.objects.get(username="administrator"), another_administrator("third")
    clerk = User.objects.create_user("clerk")
    administrator.post(at("link", clerk), {"way": "link", **STAFF})
    asked = request_role(clerk, AccountRight(role=role("support")), by=third, why=WHY)
    with pytest.raises(Exception, match="You set the password"):
        confirm_role(asked, by=by, shown=shown(asked))


def test_signed_out_everywhere_and_from_one_browser(administrator: Client) -> None:
    clerk = person("support")
    browsers = [signed_in_by_password(clerk) for _ in range(3)]
    first = UserSession.objects.filter(user=clerk).earliest("pk")
    administrator.post(reverse("people:session-end", args=[clerk.pk, first.pk]))
    assert UserSession.objects.filter(user=clerk).count() == 2
    # Not through the address of somebody else.
    other = UserSession.objects.filter(user=clerk).earliest("pk")
    by = User.objects.get(username="administrator")
    assert administrator.post(reverse("people:session-end", args=[by.pk, other.pk])).status_code == 404
    administrator.post(at("sign-out", clerk))
    assert not UserSession.objects.filter(user=clerk).exists()
    for browser in browsers:
        assert browser.get(reverse("accounts:account")).status_code == 302
    assert AuditEvent.objects.filter(type="person.sessions_ended").count() == 2


def test_changes_ask_again_who_it_is(administrator: Client) -> None:
    clerk = person("support")
    let_proof_age(administrator)
    for name in ("roles", "off", "second-factor", "link"):
        assert administrator.post(at(name, clerk), STAFF).status_code == 422
    assert administrator.post(NEW, new()).status_code == 422
    clerk.refresh_from_db()
    assert (clerk.is_active, roles_of(clerk)) == (True, {"support"})
    assert not User.objects.filter(username="clerk").exists()
