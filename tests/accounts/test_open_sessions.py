"""How long a session lives, who sees it, and what ends it at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.timezone import now
from pytest_django.fixtures import Settings

from memadmin.accounts.reauth import SEEN_AT, SIGNED_IN_AT
from memadmin.accounts.session_store import SessionStore, digest_of
from memadmin.audit.models import AuditEvent
from tests.people import person, signed_in_by_password
from tests.raw_edits import WHY

LOGIN = "/accounts/login/"
ACCOUNT = "/accounts/"

pytestmark = pytest.mark.django_db


@pytest.fixture
def clerk() -> User:
    return person("support")


def let_pass(client: Client, *, seconds: int, since: str) -> None:
    session = client.session
    session[since] -= seconds
    session.save()


class TestLimits:
    def test_fifteen_minutes_without_use_end_it(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        let_pass(client, seconds=15 * 60, since=SEEN_AT)
        answer = client.get(ACCOUNT, follow=True)
        assert answer.redirect_chain == [(f"{LOGIN}?next=/accounts/", 302)]
        assert "because you were inactive" in answer.text
        assert "you were inactive" not in client.get(LOGIN).text

    def test_use_keeps_it_open(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        for _ in range(3):
            let_pass(client, seconds=10 * 60, since=SEEN_AT)
            assert client.get(ACCOUNT).status_code == 200

    def test_a_page_that_refreshes_itself_does_not(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        background = {"HX-Request": "true", "X-Background": "yes"}
        let_pass(client, seconds=10 * 60, since=SEEN_AT)
        assert client.get(ACCOUNT, headers=background).status_code == 200
        let_pass(client, seconds=5 * 60, since=SEEN_AT)
        answer = client.get(ACCOUNT, headers=background, follow=True)
        assert answer["HX-Refresh"] == "true"

    def test_eight_hours_end_it_however_much_it_is_used(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        let_pass(client, seconds=8 * 3600, since=SIGNED_IN_AT)
        answer = client.get(ACCOUNT, follow=True)
        assert "the maximum sign-in time was reached" in answer.text

    def test_both_are_settings(self, clerk: User, settings: Settings) -> None:
        client = signed_in_by_password(clerk)
        settings.IDLE_LIMIT = timedelta(minutes=1)
        let_pass(client, seconds=60, since=SEEN_AT)
        assert client.get(ACCOUNT).status_code == 302

    def test_what_ended_is_gone(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        key = client.session.session_key or ""
        let_pass(client, seconds=15 * 60, since=SEEN_AT)
        client.get(ACCOUNT)
        assert not Session.objects.filter(session_key=digest_of(key)).exists()

    def test_use_is_written_once_a_minute_at_most(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        assert self.writes_of(client) == []
        let_pass(client, seconds=60, since=SEEN_AT)
        assert len(self.writes_of(client)) == 2
        assert self.writes_of(client) == []

    def writes_of(self, client: Client) -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            client.get(ACCOUNT)
        return [query["sql"] for query in queries if query["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]

    def test_session_person_and_permissions_are_read_once_a_request(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/sessions/").status_code == 200
        asked = [query["sql"] for query in queries]
        assert sum('FROM "django_session"' in sql for sql in asked) == 1
        assert sum('FROM "auth_user" ' in sql for sql in asked) == 1
        # Those of the person, and those of their groups.
        assert sum('FROM "auth_permission"' in sql for sql in asked) == 2

    def test_a_session_is_none_from_its_date_on(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        Session.objects.update(expire_date=now())
        assert client.get(ACCOUNT).status_code == 302

    def test_a_session_without_its_instants_is_over(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        session = client.session
        del session[SIGNED_IN_AT], session[SEEN_AT]
        session.save()
        assert client.get(ACCOUNT).status_code == 302


class TestWhatIsStored:
    def test_opens_no_session(self, clerk: User) -> None:
        """Somebody reads the tables, or a dump of them, and tries all that is in there as a cookie."""
        client = signed_in_by_password(clerk)
        key = client.session.session_key
        rows = [*Session.objects.values_list("session_key", "session_data"), *UserSession.objects.values_list()]
        words = {str(word) for row in rows for word in row}
        assert key not in words
        for word in words:
            thief = Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={word}"})
            assert thief.get(ACCOUNT).status_code == 302
        assert Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={key}"}).get(ACCOUNT).status_code == 200

    def test_copied_row_opens_nothing(self, clerk: User) -> None:
        """Data of a session, copied to a row under the digest of another key, signs nobody in."""
        signed_in_by_password(person("compliance"))
        of_officer = Session.objects.get()
        own = signed_in_by_password(clerk)
        key = "0123456789abcdefghijklmnopqrstuv"
        Session.objects.create(
            session_key=digest_of(key), session_data=of_officer.session_data, expire_date=of_officer.expire_date
        )
        Session.objects.exclude(pk=of_officer.pk).update(session_data=of_officer.session_data)
        thief = Client(headers={"cookie": f"{settings.SESSION_COOKIE_NAME}={key}"})
        for browser in (thief, own):
            assert browser.get(ACCOUNT).status_code == 302

    def test_is_found_and_ended_by_its_key(self, clerk: User) -> None:
        store = SessionStore()
        store["said"] = "tea"
        store.save()
        key = str(store.session_key)
        assert Session.objects.get().session_key == digest_of(key)
        for found in (SessionStore(key).load(), async_to_sync(SessionStore(key).aload)()):
            assert found == {"said": "tea"}
        assert SessionStore().exists(key)
        assert not SessionStore().exists(digest_of(key))
        store.cycle_key()
        assert (SessionStore(key).load(), SessionStore(store.session_key).load()) == ({}, {"said": "tea"})
        SessionStore().delete(store.session_key)
        assert not Session.objects.exists()


class TestChangesTakeEffectAtOnce:
    def test_a_role_that_was_taken_away(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        assert client.get("/sessions/").status_code == 200
        clerk.groups.clear()
        assert client.get("/sessions/").status_code == 403
        assert client.get("/sessions/newer/", headers={"HX-Request": "true"}).status_code == 403

    def test_a_role_that_was_given(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        assert client.get("/admin/").status_code == 403
        clerk.groups.add(Group.objects.get(name="administrator"))
        assert client.get("/admin/").status_code == 200

    def test_switching_off_an_account_ends_its_sessions(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        clerk.is_active = False
        clerk.save()
        assert client.get(ACCOUNT).status_code == 302
        part = client.get("/sessions/newer/", headers={"HX-Request": "true"}, follow=True)
        assert part["HX-Refresh"] == "true"
        clerk.is_active = True
        clerk.save()
        assert client.get(ACCOUNT).status_code == 302, "it stays over"
        assert AuditEvent.objects.filter(type="person.sessions_ended").exists()

    def test_switching_off_by_sql_ends_them_with_the_next_request(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        User.objects.filter(pk=clerk.pk).update(is_active=False)
        assert client.get(ACCOUNT).status_code == 302
        User.objects.filter(pk=clerk.pk).update(is_active=True)
        assert client.get(ACCOUNT).status_code == 302, "it stays over"

    def test_an_administrator_switches_somebody_off(self, clerk: User, administrator: Client) -> None:
        client = signed_in_by_password(clerk)
        form = {"username": "support", "groups": [group.pk for group in clerk.groups.all()]} | WHY
        assert administrator.post(reverse("admin:auth_user_change", args=[clerk.pk]), form).status_code == 302
        assert not UserSession.objects.filter(user=clerk).exists()
        assert client.get(ACCOUNT).status_code == 302


class TestOwnList:
    def test_programs_have_the_names_that_people_know(self, clerk: User) -> None:
        chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"
        page = signed_in_by_password(clerk, user_agent=chrome).get(ACCOUNT).text
        assert "Chrome on Linux" in page
        assert "Mozilla" not in page

    def test_shows_where_one_is_signed_in(self, clerk: User) -> None:
        here = signed_in_by_password(clerk, user_agent="Here <1>")
        signed_in_by_password(clerk, user_agent="There 2")
        page = here.get(ACCOUNT)
        assert "Here &lt;1&gt;" in page.text
        assert "There 2" in page.text
        assert page.text.count("this sign-in") == 1

    def test_signs_out_one(self, clerk: User) -> None:
        here, there = signed_in_by_password(clerk), signed_in_by_password(clerk)
        key = there.session.session_key or ""
        here.post(reverse("accounts:session-end", args=[UserSession.objects.get(session_key=digest_of(key)).pk]))
        assert there.get(ACCOUNT).status_code == 302
        assert here.get(ACCOUNT).status_code == 200

    def test_signs_out_all_others(self, clerk: User) -> None:
        here, there, elsewhere = (signed_in_by_password(clerk) for _ in range(3))
        here.post(reverse("accounts:sessions-end-others"))
        assert there.get(ACCOUNT).status_code == elsewhere.get(ACCOUNT).status_code == 302
        assert here.get(ACCOUNT).status_code == 200
        assert AuditEvent.objects.get(type="person.sessions_ended").counters == {"sessions": 2}

    def test_nobody_elses(self, clerk: User) -> None:
        there = signed_in_by_password(person("reviewer"))
        here = signed_in_by_password(clerk)
        theirs = UserSession.objects.get(user__username="reviewer")
        assert here.post(reverse("accounts:session-end", args=[theirs.pk])).status_code == 404
        assert there.get(ACCOUNT).status_code == 200


class TestPassword:
    NEW = "quite-another-Passw0rd"

    def change(self, client: Client, old: str = "support", new: str = NEW, again: str = NEW) -> int:
        form = {"oldpassword": old, "password1": new, "password2": again}
        return client.post(reverse("account_change_password"), form).status_code

    def test_is_changed_and_signs_out_everywhere_else(self, clerk: User) -> None:
        here, there = signed_in_by_password(clerk), signed_in_by_password(clerk)
        assert self.change(here) == 302
        assert here.get(ACCOUNT).status_code == 200
        assert there.get(ACCOUNT).status_code == 302
        assert AuditEvent.objects.filter(type="person.password_changed").exists()

    @pytest.mark.parametrize(
        "wrong", [{"old": "wrong"}, {"again": "something-else-1"}, {"new": "support", "again": "support"}]
    )
    def test_is_not_changed_by_halves(self, clerk: User, wrong: dict[str, str]) -> None:
        assert self.change(signed_in_by_password(clerk), **wrong) == 422
        clerk.refresh_from_db()
        assert clerk.check_password("support")

    def test_is_not_guessed_in_an_open_session(self, clerk: User) -> None:
        client = signed_in_by_password(clerk)
        assert [self.change(client, old=f"guess {number}") for number in range(6)] == [422] * 5 + [429]


def test_cookies_are_the_hosts_own_under_https() -> None:
    """Read in a process of its own, because the settings of this one are made."""
    names = ["SESSION_COOKIE_NAME", "CSRF_COOKIE_NAME", "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE"]
    show = f"import json; from memadmin import settings; print(json.dumps([getattr(settings, n) for n in {names}]))"
    environment = {**os.environ, "MEMADMIN_HTTPS": "yes"}
    said = subprocess.run([sys.executable, "-c", show], env=environment, capture_output=True, text=True, check=True)
    assert json.loads(said.stdout) == ["__Host-session", "__Host-csrf", True, True]
