"""Signing in and out."""

from __future__ import annotations

import re

import pytest
from allauth.account.adapter import DefaultAccountAdapter
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from memadmin import settings as real_settings
from memadmin.accounts.adapters import AccountAdapter

LOGIN = "/accounts/login/"


@pytest.fixture
def clerk(db: None) -> User:
    return User.objects.create_user("clerk", password="clerk")


def test_stranger_is_led_to_the_login_and_back(client: Client, clerk: User) -> None:
    away = client.get("/admin/auth/user/", follow=True)
    assert away.redirect_chain[-1][0] == f"{LOGIN}?next=/admin/auth/user/"
    back = client.post(LOGIN, {"username": "clerk", "password": "clerk", "next": "/admin/auth/user/"})
    assert back["Location"] == "/admin/auth/user/"


def test_wrong_password_is_said_in_one_sentence(client: Client, clerk: User) -> None:
    response = client.post(LOGIN, {"username": "clerk", "password": "<wrong>"})
    assert response.status_code == 422
    assert response.text.count("Wrong user name or password, or the account is disabled.") == 1
    assert 'value="clerk"' in response.text
    assert "wrong&gt;" not in response.text


@pytest.mark.parametrize(
    "sent", [{}, {"username": "nobody", "password": "nobody"}, {"username": "a\0b", "password": "x"}]
)
def test_unknown_name_gets_the_same_answer(client: Client, clerk: User, sent: dict[str, str]) -> None:
    response = client.post(LOGIN, sent)
    assert response.status_code == 422
    assert "Wrong user name or password" in response.text


def test_e_mail_signs_in_like_the_name(client: Client, clerk: User) -> None:
    User.objects.update(email="clerk@example.org")
    answer = client.post(LOGIN, {"username": "Clerk@Example.org", "password": "clerk"})
    assert answer.status_code == 302
    assert int(client.session["_auth_user_id"]) == clerk.pk


def test_nobody_signs_up(client: Client, db: None) -> None:
    assert client.get("/accounts/signup/").status_code == 404
    assert client.get("/accounts/password/reset/").status_code == 404


def test_account_that_was_switched_off_stays_out(client: Client, clerk: User) -> None:
    User.objects.update(is_active=False)
    right = client.post(LOGIN, {"username": "clerk", "password": "clerk"})
    wrong = client.post(LOGIN, {"username": "clerk", "password": "wrong"})
    assert right.status_code == wrong.status_code == 422
    assert without_tokens(right.text) == without_tokens(wrong.text)


def without_tokens(text: str) -> str:
    return re.sub(r'name="csrfmiddlewaretoken" value="\w+"', "", text)


class TestTooManyTries:
    WRONG, RIGHT = {"username": "clerk", "password": "wrong"}, {"username": "clerk", "password": "clerk"}

    def fail_until_refused(self, client: Client, **sent: str) -> None:
        for _ in range(5):
            assert client.post(LOGIN, {**self.WRONG, **sent}).status_code == 422
        answer = client.post(LOGIN, {**self.WRONG, **sent})
        assert answer.status_code == 429
        assert "Too many failed attempts" in answer.text

    def test_from_one_address_even_the_right_password_waits(self, client: Client, clerk: User) -> None:
        self.fail_until_refused(client)
        assert client.post(LOGIN, self.RIGHT).status_code == 429

    def test_the_named_person_signs_in_from_their_own_place(self, client: Client, clerk: User) -> None:
        self.fail_until_refused(client)
        assert client.post(LOGIN, self.RIGHT, REMOTE_ADDR="192.0.2.7").status_code == 302

    def test_counted_by_name_alone_a_stranger_would_keep_them_out(
        self, client: Client, clerk: User, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(AccountAdapter, "pre_authenticate", DefaultAccountAdapter.pre_authenticate)
        self.fail_until_refused(client)
        assert client.post(LOGIN, self.RIGHT, REMOTE_ADDR="192.0.2.7").status_code == 429

    def test_a_name_that_nobody_has_is_counted_alike(self, client: Client, clerk: User) -> None:
        self.fail_until_refused(client, username="nobody")
        assert client.post(LOGIN, self.RIGHT).status_code == 302

    def test_one_address_does_not_try_many_names(self, client: Client, clerk: User) -> None:
        for number in range(20):
            assert client.post(LOGIN, {**self.WRONG, "username": f"clerk{number}"}).status_code == 422
        assert client.post(LOGIN, {**self.WRONG, "username": "clerk20"}).status_code == 429

    def test_the_address_is_the_one_that_the_proxy_saw(self, client: Client, clerk: User, settings: Settings) -> None:
        settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
        for number in range(5):
            client.post(LOGIN, self.WRONG, headers={"X-Forwarded-For": f"198.51.100.{number}, 192.0.2.7"})
        forged = {"X-Forwarded-For": "198.51.100.77, 192.0.2.7"}
        assert client.post(LOGIN, self.RIGHT, headers=forged).status_code == 429
        assert client.post(LOGIN, self.RIGHT, headers={"X-Forwarded-For": "192.0.2.8"}).status_code == 302

    def test_tries_are_counted_for_all_processes_together(
        self, client: Client, clerk: User, settings: Settings
    ) -> None:
        settings.CACHES = real_settings.CACHES
        self.fail_until_refused(client)
        cache.close()
        assert client.post(LOGIN, self.RIGHT).status_code == 429
        cache.clear()
        assert client.post(LOGIN, self.RIGHT).status_code == 302


def test_login_leads_nowhere_else(client: Client, clerk: User) -> None:
    response = client.post(LOGIN, {"username": "clerk", "password": "clerk", "next": "https://elsewhere.example/"})
    assert response["Location"] == "/"


def test_part_of_a_page_whose_session_ended_loads_the_page_again(client: Client) -> None:
    response = client.get("/admin/", headers={"HX-Request": "true"}, follow=True)
    assert response["HX-Refresh"] == "true"
    assert response.content == b""


def test_signing_out_takes_a_post(client: Client, clerk: User) -> None:
    client.force_login(clerk)
    assert client.get(reverse("accounts:logout")).status_code == 405
    assert client.post(reverse("accounts:logout"))["Location"] == LOGIN
    assert "_auth_user_id" not in client.session


def test_signing_out_clears_what_the_browser_kept(client: Client, clerk: User) -> None:
    client.force_login(clerk)
    assert client.post(reverse("accounts:logout"))["Clear-Site-Data"] == '"cache"'
