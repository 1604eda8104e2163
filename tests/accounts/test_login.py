"""Signing in and out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

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
    assert response.text.count("User name or password is wrong, or the account is switched off.") == 1
    assert 'value="clerk"' in response.text
    assert "wrong&gt;" not in response.text


@pytest.mark.parametrize(
    "sent", [{}, {"username": "nobody", "password": "nobody"}, {"username": "a\0b", "password": "x"}]
)
def test_unknown_name_gets_the_same_answer(client: Client, clerk: User, sent: dict[str, str]) -> None:
    response = client.post(LOGIN, sent)
    assert response.status_code == 422
    assert "User name or password is wrong" in response.text


def test_account_that_was_switched_off_stays_out(client: Client, clerk: User) -> None:
    User.objects.update(is_active=False)
    assert client.post(LOGIN, {"username": "clerk", "password": "clerk"}).status_code == 422


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
