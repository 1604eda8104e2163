"""Two factors for everybody: asked for on the way in, set up before anything else, taken away by an administrator."""

from __future__ import annotations

import re

import pytest
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from memadmin.accounts import user_actions
from memadmin.audit.models import AuditEvent
from tests.accounts.factors import code_of, code_shown_for, note_factor, recovery_codes_of, with_app
from tests.people import person, signed_in, signed_in_by_password
from tests.raw_edits import WHY

LOGIN = "/accounts/login/"
SECOND_FACTOR = "/accounts/second-factor/"

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def required(settings: Settings) -> None:
    settings.SECOND_FACTOR_REQUIRED = True


@pytest.fixture
def clerk() -> User:
    return person("support")


class TestWhoHasNone:
    @pytest.mark.parametrize(
        "address", ["/", "/sessions/", "/stores/", "/accounts/", "/admin/", "/accounts/recovery-codes/"]
    )
    def test_is_led_to_set_one_up(self, clerk: User, address: str) -> None:
        assert signed_in_by_password(clerk).get(address)["Location"] == SECOND_FACTOR

    def test_sends_nothing(self, clerk: User) -> None:
        answer = signed_in_by_password(clerk).post("/search/", {"q": "tea"})
        assert answer.status_code == 403
        assert "A second factor is required" in answer.text

    def test_refreshes_no_part_of_a_page(self, clerk: User) -> None:
        answer = signed_in_by_password(clerk).get("/sessions/newer/", headers={"HX-Request": "true"})
        assert answer["HX-Redirect"] == SECOND_FACTOR
        assert answer.content == b""

    def test_gets_no_data(self, clerk: User) -> None:
        answer = signed_in_by_password(clerk).get("/sessions/", headers={"Accept": "application/json"})
        assert answer.status_code == 403
        assert answer.json() == {"error": "Set up a second factor first."}

    def test_may_leave(self, clerk: User) -> None:
        assert signed_in_by_password(clerk).post("/accounts/logout/").status_code == 302

    def test_chooses_one(self, clerk: User) -> None:
        page = signed_in_by_password(clerk).get(SECOND_FACTOR)
        assert reverse("mfa_activate_totp") in page.text
        assert reverse("mfa_add_webauthn") in page.text

    def test_would_go_everywhere_without_the_middleware(self, clerk: User, settings: Settings) -> None:
        settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.endswith(".SecondFactor")]
        assert signed_in_by_password(clerk).get("/accounts/").status_code == 200

    def test_goes_everywhere_where_it_is_optional(self, clerk: User, settings: Settings) -> None:
        settings.SECOND_FACTOR_REQUIRED = False
        page = signed_in_by_password(clerk).get("/accounts/")
        assert page.status_code == 200
        assert "Two-factor sign-in is off" in page.text


@pytest.mark.django_db(transaction=True)
def test_an_app_is_set_up_and_asked_for_from_then_on(clerk: User) -> None:
    client = signed_in_by_password(clerk)
    page = client.get(reverse("mfa_activate_totp"))
    secret = re.search(r'id="totp-key">(\w+)<', page.text)
    assert secret
    assert client.post(reverse("mfa_activate_totp"), {"code": "000000"}).status_code == 422
    codes = client.post(reverse("mfa_activate_totp"), {"code": code_of(secret[1])}, follow=True)
    assert codes.redirect_chain == [("/accounts/recovery-codes/", 302)]
    assert all(code in codes.text for code in recovery_codes_of(clerk))
    assert client.get("/accounts/").status_code == 200

    # They are shown once.
    again = client.get("/accounts/recovery-codes/")
    assert "10 of 10 codes are unused" in again.text
    assert not any(code in again.text for code in recovery_codes_of(clerk))

    second = signed_in_by_password(clerk)
    assert second.get("/accounts/")["Location"] == f"{LOGIN}?next=/accounts/"
    assert second.get(LOGIN)["Location"] == reverse("mfa_authenticate")
    assert second.post(reverse("mfa_authenticate"), {"code": "000000"}).status_code == 422
    assert second.post(reverse("mfa_authenticate"), {"code": code_of(secret[1])})["Location"] == "/"
    assert second.get("/accounts/").status_code == 200
    told = AuditEvent.objects.filter(type__in=["person.signed_in", "person.sign_in_failed", "second_factor.added"])
    assert list(told.order_by("number").values_list("type", "reason_code")) == [
        ("person.signed_in", "password"),
        ("second_factor.added", "totp"),
        ("second_factor.added", "recovery_codes"),
        ("person.sign_in_failed", "wrong_code"),
        ("person.signed_in", "totp"),
    ]


def test_the_way_back_survives_the_second_factor(clerk: User) -> None:
    secret = with_app(clerk)
    client = Client()
    client.post(LOGIN, {"username": "support", "password": "support", "next": "/stores/"})
    assert client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})["Location"] == "/stores/"


def test_a_code_works_once(clerk: User) -> None:
    code = code_of(with_app(clerk))
    assert signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code}).status_code == 302
    assert signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code}).status_code == 422


def test_a_recovery_code_works_once(clerk: User) -> None:
    with_app(clerk)
    code = recovery_codes_of(clerk)[0]
    assert signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code}).status_code == 302
    assert signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code}).status_code == 422


def test_codes_are_not_guessed(clerk: User) -> None:
    secret = with_app(clerk)
    client = signed_in_by_password(clerk)
    for number in range(5):
        assert client.post(reverse("mfa_authenticate"), {"code": f"00000{number}"}).status_code == 422
    refused = client.post(reverse("mfa_authenticate"), {"code": code_shown_for(secret)})
    assert refused.status_code == 422
    assert "Too many failed attempts" in refused.text


def test_a_session_older_than_the_factor_has_to_show_it(clerk: User) -> None:
    client = signed_in_by_password(clerk)
    secret = with_app(clerk)
    assert client.get("/accounts/")["Location"] == SECOND_FACTOR
    page = client.get(SECOND_FACTOR)
    assert "You signed in before you set up this second factor" in page.text
    assert "Your password" not in page.text
    assert client.post(SECOND_FACTOR, {"confirm-password": "support"}).status_code == 422
    assert client.post(SECOND_FACTOR, {"confirm-code": "000000"}).status_code == 422
    assert client.post(SECOND_FACTOR, {"confirm-code": code_of(secret)}).status_code == 302
    assert client.get("/accounts/").status_code == 200


def test_what_somebody_else_showed_in_this_browser_counts_for_nobody_else(clerk: User) -> None:
    client = signed_in_by_password(clerk)
    note_factor(client, person("reviewer"))
    assert client.get("/accounts/")["Location"] == SECOND_FACTOR


class TestSecrets:
    def test_are_not_readable_in_the_database(self, clerk: User) -> None:
        secret = with_app(clerk)
        with connection.cursor() as cursor:
            cursor.execute("SELECT string_agg(data::text, '') FROM mfa_authenticator")
            (kept,) = cursor.fetchone()
        assert secret not in kept
        assert "seed" in kept

    def test_outlive_a_new_secret_key_that_names_the_old_one(self, clerk: User, settings: Settings) -> None:
        secret = with_app(clerk)
        settings.SECRET_KEY_FALLBACKS = [settings.SECRET_KEY]
        settings.SECRET_KEY = "another"
        assert (
            signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code_of(secret)}).status_code == 302
        )

    def test_under_a_key_that_is_gone_say_so(self, clerk: User, settings: Settings) -> None:
        secret = with_app(clerk)
        settings.SECRET_KEY = "another"
        refused = signed_in_by_password(clerk).post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        assert refused.status_code == 422
        assert "An administrator can reset it." in refused.text


class TestRemoving:
    def remove(self, clerk: User, factor: Authenticator) -> Client:
        client = signed_in_by_password(clerk)
        client.force_login(clerk)
        note_factor(client, clerk)
        self.answer = client.post(reverse("accounts:second-factor-remove", args=[factor.pk]))
        return client

    def test_the_last_one_stays(self, clerk: User) -> None:
        with_app(clerk)
        client = self.remove(clerk, Authenticator.objects.get(type="totp"))
        assert "This is your last second factor" in client.get("/accounts/").text
        assert Authenticator.objects.filter(type="totp").exists()

    def test_where_it_is_optional_the_last_one_takes_the_recovery_codes_along(
        self, clerk: User, settings: Settings
    ) -> None:
        settings.SECOND_FACTOR_REQUIRED = False
        with_app(clerk)
        self.remove(clerk, Authenticator.objects.get(type="totp"))
        assert not Authenticator.objects.exists()
        assert AuditEvent.objects.filter(type="second_factor.removed", reason_code="totp").exists()

    def test_nobody_removes_somebody_elses(self, clerk: User) -> None:
        with_app(person("reviewer"))
        self.remove(clerk, Authenticator.objects.get(type="totp"))
        assert self.answer.status_code == 404
        assert Authenticator.objects.count() == 2

    def test_recovery_codes_are_no_factor(self, clerk: User) -> None:
        with_app(clerk)
        self.remove(clerk, Authenticator.objects.get(type="recovery_codes"))
        assert self.answer.status_code == 404


class TestReset:
    def reset(self, administrator: Client, lost: User) -> str:
        boss = User.objects.get(username="administrator")
        note_factor(administrator, boss)
        address = reverse("admin:auth_user_reset_second_factor", args=[lost.pk])
        assert administrator.get(address).status_code in (200, 404)
        return administrator.post(address, WHY, follow=True).text

    def test_takes_factors_away_and_ends_sessions(self, administrator: Client, clerk: User) -> None:
        secret = with_app(clerk)
        client = signed_in_by_password(clerk)
        client.post(reverse("mfa_authenticate"), {"code": code_of(secret)})
        assert client.get("/accounts/").status_code == 200
        assert "Second factors reset." in self.reset(administrator, clerk)
        assert not Authenticator.objects.exists()
        assert client.get("/accounts/")["Location"] == f"{LOGIN}?next=/accounts/"
        assert signed_in_by_password(clerk).get("/")["Location"] == SECOND_FACTOR
        event = AuditEvent.objects.get(type="second_factor.reset")
        assert event.counters == {"factors": 1}

    def test_is_not_for_oneself(self, administrator: Client) -> None:
        boss = User.objects.get(username="administrator")
        with_app(boss)
        assert "Ask another administrator" in self.reset(administrator, boss)
        assert Authenticator.objects.filter(type="totp").exists()

    def test_of_a_superuser_is_a_superusers(self, administrator: Client) -> None:
        owner = User.objects.create_superuser("owner")
        with_app(owner)
        self.reset(administrator, owner)
        assert Authenticator.objects.filter(user=owner).exists()

    def test_is_nobody_elses(self, clerk: User) -> None:
        with_app(person("reviewer"))
        client = signed_in(clerk)
        note_factor(client, clerk)
        address = reverse("admin:auth_user_reset_second_factor", args=[User.objects.get(username="reviewer").pk])
        assert client.post(address).status_code == 403

    def test_by_command(self, clerk: User, capsys: pytest.CaptureFixture[str]) -> None:
        with_app(clerk)
        call_command("reset_second_factor", "support")
        assert capsys.readouterr().out == "support had 1 second factor; all were removed.\n"
        assert not Authenticator.objects.exists()
        with pytest.raises(CommandError, match="There is no user nobody"):
            call_command("reset_second_factor", "nobody")

    def test_leaves_nothing_when_the_log_cannot_be_written(self, clerk: User, monkeypatch: pytest.MonkeyPatch) -> None:
        with_app(clerk)
        monkeypatch.setattr("memadmin.audit.record", lambda *args, **kwargs: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            user_actions.reset_second_factor(clerk, by=None)
        assert Authenticator.objects.count() == 2


@pytest.mark.parametrize(
    ("host", "is_offered"), [("localhost:8000", True), ("127.0.0.1:8000", False), ("[::1]:8000", False)]
)
def test_a_passkey_is_offered_under_a_name_alone(operator: Client, host: str, is_offered: bool) -> None:
    page = operator.get(reverse("mfa_add_webauthn"), headers={"Host": host})
    assert page.status_code == 200
    assert ("data-passkey" in page.text) == is_offered
    assert ("A passkey is tied to a host name" in page.text) != is_offered
    assert ("(on this machine, localhost)" in page.text) != is_offered


def test_a_passkey_sent_to_an_address_of_numbers_is_answered_with_the_sentence(operator: Client) -> None:
    sent = {"name": "key", "credential": "{}"}
    page = operator.post(reverse("mfa_add_webauthn"), sent, headers={"Host": "127.0.0.1:8000"})
    assert page.status_code == 422
    assert "A passkey is tied to a host name" in page.text
