"""Who comes in through the company's sign-in, and who does not."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from tests.accounts.company import BEGIN, come_in, company, company_at, somebody
from tests.accounts.factors import code_of, with_app
from tests.people import person

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # the provider's own
]


@pytest.fixture
def clerk() -> User:
    clerk = person("support")
    clerk.email = "Clerk@Tea.example"
    clerk.save()
    return clerk


def failure() -> tuple[str, str]:
    event = AuditEvent.objects.filter(type="person.sign_in_failed").latest("number")
    return event.outcome, event.reason_code


def test_somebody_an_administrator_made_comes_in_by_their_address(client: Client, clerk: User) -> None:
    with company(somebody("c1", "clerk@tea.example")):
        answer: Any = come_in(client, "c1", to="/stores/")
    assert answer["Location"] == "/stores/"
    assert client.get("/stores/").status_code == 200
    assert int(client.session["_auth_user_id"]) == clerk.pk
    assert AuditEvent.objects.get(type="person.signed_in").reason_code == "company_account"
    clerk.refresh_from_db()
    assert clerk.check_password("support"), "the password stays theirs"


def test_they_are_known_again_when_their_address_changes(client: Client, clerk: User) -> None:
    with company(somebody("c1", "clerk@tea.example")):
        come_in(Client(), "c1")
    with company(somebody("c1", "married@tea.example")):
        come_in(client, "c1")
    assert int(client.session["_auth_user_id"]) == clerk.pk


@pytest.mark.parametrize("is_verified", [False, None, "true", 1])
def test_an_address_that_nobody_verified_is_nobodys(client: Client, clerk: User, is_verified: object) -> None:
    with company(somebody("c1", "clerk@tea.example", is_verified=is_verified)):
        answer: Any = come_in(client, "c1")
    assert answer.status_code == 403
    assert "did not confirm your e-mail address" in answer.text
    assert "_auth_user_id" not in client.session
    assert failure() == ("failed", "not_verified")


def test_a_stranger_stays_out(client: Client, clerk: User) -> None:
    with company(somebody("s1", "stranger@tea.example")):
        answer: Any = come_in(client, "s1")
    assert answer.status_code == 403
    assert "Ask an administrator to create or enable one" in answer.text
    assert User.objects.count() == 1
    assert failure() == ("failed", "not_invited")


def test_somebody_of_an_allowed_domain_gets_an_account_without_a_role(client: Client, db: None) -> None:
    with company(somebody("n1", "new@tea.example"), domains=["tea.example"]):
        come_in(client, "n1")
    newcomer = User.objects.get()
    assert (newcomer.email, list(newcomer.groups.all()), newcomer.is_superuser) == ("new@tea.example", [], False)
    assert not newcomer.has_usable_password()
    assert client.get("/sessions/").status_code == 403


@pytest.mark.parametrize("email", ["new@evil-tea.example", "new@tea.example.evil.example", "tea.example@evil.example"])
def test_a_domain_that_only_looks_like_it_does_not_count(client: Client, db: None, email: str) -> None:
    with company(somebody("n1", email), domains=["tea.example"]):
        answer: Any = come_in(client, "n1")
    assert answer.status_code == 403
    assert not User.objects.exists()


def test_somebody_who_was_switched_off_stays_out_by_this_door_too(client: Client, clerk: User) -> None:
    both = somebody("known", "clerk@tea.example"), somebody("not yet known", "clerk@tea.example")
    with company(*both, domains=["tea.example"]):
        come_in(Client(), "known")
        clerk.is_active = False
        clerk.save()
        for who in ("known", "not yet known"):
            answer: Any = come_in(client, who)
            assert answer.status_code == 403
    assert "_auth_user_id" not in client.session
    assert User.objects.count() == 1


def test_an_address_of_two_accounts_opens_neither(client: Client, clerk: User) -> None:
    User.objects.create_user("other", email="clerk@tea.example")
    with company(somebody("c1", "clerk@tea.example")):
        answer: Any = come_in(client, "c1")
    assert "Two accounts here have your e-mail address" in answer.text
    assert failure() == ("failed", "ambiguous")


@override_settings(SECOND_FACTOR_REQUIRED=True)
def test_the_second_factor_is_asked_for_all_the_same(client: Client, clerk: User) -> None:
    with company(somebody("c1", "clerk@tea.example")):
        come_in(client, "c1")
        assert client.get("/")["Location"] == reverse("accounts:second-factor")
        secret = with_app(clerk)
        fresh = Client()
        answer: Any = come_in(fresh, "c1")
        assert answer["Location"] == reverse("mfa_authenticate")
        assert fresh.post(reverse("mfa_authenticate"), {"code": code_of(secret)}).status_code == 302
    assert Authenticator.objects.filter(user=clerk).exists()
    assert fresh.get("/").status_code == 200


def test_a_provider_that_is_away_is_a_sentence(client: Client, db: None) -> None:
    with company_at("http://localhost:1"):
        answer = client.get(BEGIN)
    assert answer.status_code == 503
    assert "is not responding" in answer.text
    assert failure() == ("failed", "provider")


def test_a_provider_that_goes_away_in_between_is_a_sentence(client: Client, db: None) -> None:
    with company(somebody("c1", "clerk@tea.example")) as address:
        state = client.get(BEGIN)["Location"].split("state=")[1].split("&")[0]
    with company_at(address):
        answer = client.get(f"{BEGIN}callback/", {"state": state, "code": "x"})
    assert answer.status_code == 503


@pytest.mark.parametrize("query", ["", "?state=made-up&code=x", "?code=x", "?error=access_denied"])
def test_nobody_comes_back_who_did_not_go(client: Client, db: None, query: str) -> None:
    with company():
        answer = client.get(f"{BEGIN}callback/{query}")
    assert answer.status_code in (302, 503)
    assert "_auth_user_id" not in client.session


def test_no_other_site_sends_somebody_there(client: Client, db: None) -> None:
    with company():
        assert client.get(BEGIN, headers={"Sec-Fetch-Site": "cross-site"})["Location"] == "/accounts/login/"


def test_nothing_is_joined_to_an_account_by_an_address(client: Client, clerk: User) -> None:
    client.force_login(clerk)
    with company(somebody("s1", "stranger@tea.example")):
        away = client.get(BEGIN, {"process": "connect"})
        states = client.session["socialaccount_states"]
    assert away.status_code == 302
    assert [state[0]["process"] for state in states.values()] == ["login"]


def test_without_an_issuer_there_is_no_such_page(client: Client, db: None) -> None:
    assert client.get(BEGIN).status_code == 404
    assert client.get(f"{BEGIN}callback/").status_code == 404
    assert "Company account" not in client.get("/accounts/login/").text
