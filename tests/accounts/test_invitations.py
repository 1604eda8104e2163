"""Invitations: links to set a password, once, for three days, for an account that is switched on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.signing import Signer
from django.test import Client
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts.models import AccountAccess, Invitation
from memadmin.accounts.people import invitations, services
from memadmin.audit.models import AuditEvent
from tests.people import person

pytestmark = pytest.mark.django_db

WHY = audit.Why("staff")
GOOD = "f7Hq2pLw9x"


@pytest.fixture
def by() -> User:
    return person("administrator")


@pytest.fixture
def clerk(by: User) -> User:
    clerk, _ = services.add_person(
        username="clerk", name="", email="clerk@example.com", roles=[], by=by, why=audit.Why("staff")
    )
    return clerk


def link_for(clerk: User, by: User) -> str:
    token, _ = services.invite(clerk, by=by, is_mailed=False, why=WHY)
    return invitations.path_of(token)


def send(path: str, password: str = GOOD, repeated: str = GOOD) -> Any:
    return Client().post(path, {"password": password, "repeated": repeated})


def test_the_invited_person_sets_the_password_and_signs_in(clerk: User, by: User) -> None:
    path = link_for(clerk, by)
    # Scanners of mail open links, too.
    for _ in range(2):
        assert Client().get(path).status_code == 200
    assert send(path).status_code == 200
    answer = Client().post(reverse("accounts:login"), {"username": "clerk", "password": GOOD})
    assert answer.status_code == 302
    event = AuditEvent.objects.get(type="person.invitation_accepted")
    assert event.object_kind == "auth.user"
    # Whoever saw the link could have used it.
    assert AccountAccess.objects.filter(person=clerk, by=by).exists()


def test_the_second_factor_is_demanded_as_ever(clerk: User, by: User, settings: Any) -> None:
    settings.SECOND_FACTOR_REQUIRED = True
    send(link_for(clerk, by))
    browser = Client()
    browser.post(reverse("accounts:login"), {"username": "clerk", "password": GOOD})
    answer = browser.get(reverse("accounts:account"))
    assert (answer.status_code, answer["Location"]) == (302, reverse("accounts:second-factor"))


def refused_as(reason: str, path: str, clerk: User) -> None:
    """The link neither opens nor sets anything, and the log says so."""
    assert Client().get(path).status_code == 410
    assert send(path, "otherQ7pLw9x", "otherQ7pLw9x").status_code == 410
    clerk.refresh_from_db()
    assert not clerk.check_password("otherQ7pLw9x")
    events = AuditEvent.objects.filter(type="person.invitation_refused")
    expected = [(reason, "denied")] * 2 if reason else []
    assert list(events.values_list("reason_code", "outcome")) == expected


def test_used_twice(clerk: User, by: User) -> None:
    path = link_for(clerk, by)
    send(path)
    refused_as("used", path, clerk)


def test_replaced_by_a_newer_one(clerk: User, by: User) -> None:
    path = link_for(clerk, by)
    newer = link_for(clerk, by)
    refused_as("used", path, clerk)
    assert send(newer).status_code == 200


def test_expired(clerk: User, by: User) -> None:
    path = link_for(clerk, by)
    assert Invitation.objects.get().expires_at - now() <= timedelta(days=3)
    Invitation.objects.update(expires_at=now())
    refused_as("expired", path, clerk)


def test_account_switched_off_and_on_again(clerk: User, by: User) -> None:
    path = link_for(clerk, by)
    services.switch_off(clerk, by=by, why=WHY)
    refused_as("switched_off", path, clerk)
    services.switch_on(clerk, by=by, why=WHY)
    assert send(path).status_code == 410


def test_account_switched_off_elsewhere(clerk: User, by: User) -> None:
    """As by a raw edit, which leaves the link."""
    path = link_for(clerk, by)
    User.objects.filter(pk=clerk.pk).update(is_active=False)
    refused_as("switched_off", path, clerk)


TAMPERED: dict[str, Callable[[str], str]] = {
    "no signature": lambda token: token.split(".")[0],
    "another signature": lambda token: f"{token.split('.')[0]}.{'A' * 43}",
    "another token": lambda token: f"x{token}",
    "signed for something else": lambda token: Signer(salt="other", sep=".").sign(token.split(".")[0]),
    "one that was never made": lambda token: invitations.SIGNER.sign("guessed"),
    "the stored digest": lambda token: invitations.SIGNER.sign(Invitation.objects.get().digest),
    "no token": lambda token: ".",
    "odd characters": lambda token: "\0ü.\N{ZERO WIDTH SPACE}",
}


@pytest.mark.parametrize("change", TAMPERED)
def test_tampered(clerk: User, by: User, change: str) -> None:
    token, _ = services.invite(clerk, by=by, is_mailed=False, why=WHY)
    refused_as("", invitations.path_of(TAMPERED[change](token)), clerk)


def test_the_database_has_no_token(clerk: User, by: User) -> None:
    token, _ = services.invite(clerk, by=by, is_mailed=False, why=WHY)
    stored = str(Invitation.objects.values_list().get())
    assert token not in stored
    assert token.split(".")[0] not in stored


@pytest.mark.parametrize(
    ("password", "repeated", "problem"),
    [
        ("", "", "Choose a password."),
        ("clerk", "clerk", "This password is too short."),
        ("password", "password", "This password is too common."),
        (GOOD, "f7Hq2pLw9y", "The two passwords differ."),
    ],
)
def test_a_weak_password_leaves_the_link(clerk: User, by: User, password: str, repeated: str, problem: str) -> None:
    path = link_for(clerk, by)
    answer = send(path, password, repeated)
    assert answer.status_code == 422
    assert problem in answer.text
    assert send(path).status_code == 200


@pytest.fixture
def mail_server(settings: Any) -> None:
    settings.MAIL_SERVER = {"EMAIL_HOST": "mail.example.com"}
    settings.CONSOLE_URL = "https://memadmin.example.com"


def test_a_mail_has_the_link_and_the_administrator_does_not_see_it(mail_server: None, administrator: Client) -> None:
    form = {"username": "clerk", "name": "", "email": "clerk@example.com", "way": "mail"}
    page = administrator.post(reverse("people:new"), form, follow=True)
    (sent,) = mail.outbox
    assert sent.to == ["clerk@example.com"]
    path = next(word for word in sent.body.split() if "/invitation/" in word).removeprefix(
        "https://memadmin.example.com"
    )
    assert "/invitation/" not in page.text
    assert send(path).status_code == 200
    assert AuditEvent.objects.get(type="person.invited").reason_code == "mailed"


def test_a_mailed_link_leaves_the_roles(mail_server: None, by: User) -> None:
    clerk = person("support")
    User.objects.filter(pk=clerk.pk).update(email="clerk@example.com")
    _, taken = services.invite(clerk, by=by, is_mailed=True, why=WHY)
    assert (taken, list(clerk.groups.all())) == ([], [Group.objects.get(name="support")])


def test_a_mail_server_that_refuses_leaves_the_account(
    mail_server: None, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("clerk@example.com is not liked")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", fail)
    form = {"username": "clerk", "name": "", "email": "clerk@example.com", "way": "mail"}
    page = administrator.post(reverse("people:new"), form, follow=True)
    assert "The mail server did not take the mail." in page.text
    assert User.objects.filter(username="clerk").exists()


def test_old_links_are_forgotten(clerk: User, by: User) -> None:
    link_for(clerk, by)
    assert invitations.forget_old_links() == 0
    Invitation.objects.update(expires_at=now() - timedelta(days=31))
    assert invitations.forget_old_links() == 1
