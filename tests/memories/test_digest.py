"""The daily digest: what it says and does not, to whom, once a day, and what happens when nobody takes it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.core.exceptions import ImproperlyConfigured
from django.urls import reverse
from django.utils.timezone import now

from memadmin import environment
from memadmin.audit.models import AuditEvent
from memories_app.models import Digest, Memory
from memories_app.review import digest, proposal_expiry
from tests.mails import words_of_mail
from tests.meanwhile import somebody_else
from tests.memories.queue import a_reviewer, waiting
from tests.memories.test_lapsing import aged
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

KEY = bytes(range(32))


class Receiver(BaseHTTPRequestHandler):
    """Somebody's server: what it was sent, and the answers it gives, the last of them again and again."""

    taken: list[tuple[dict[str, str], bytes]]
    answers: list[int]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(autouse=True)
def at_any_hour(settings: Any) -> None:
    settings.DIGEST_HOUR = 0


@pytest.fixture
def receiver(settings: Any) -> Iterator[type[Receiver]]:
    class Ours(Receiver):
        taken: list[tuple[dict[str, str], bytes]] = []  # noqa: RUF012  # a class of its own for each test
        answers = [200]  # noqa: RUF012

    with HTTPServer(("127.0.0.1", 0), Ours) as server:
        running = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
        running.start()
        settings.DIGEST_URL = f"http://127.0.0.1:{server.server_port}/hook?room=reviews"
        settings.DIGEST_SECRET = KEY
        yield Ours
        server.shutdown()
        running.join()


@pytest.fixture
def mail_goes_out(settings: Any) -> None:
    settings.MAIL_SERVER, settings.CONSOLE_URL = {"EMAIL_HOST": "mail.example.org"}, "https://console.example.org"


def with_address(user: User, email: str, *, is_verified: bool = True) -> User:
    EmailAddress.objects.create(user=user, email=email, verified=is_verified, primary=True)
    return user


@pytest.fixture
def ada(db: None) -> User:
    return with_address(a_reviewer("ada"), "ada@example.org")


def a_day() -> None:
    """Three that wait, of which one is late and another expires soon; one expired, and one is a second person's."""
    waiting("Prefers tea at the kiosk in Tallinn.")
    aged(waiting(), 3)
    aged(waiting(), 29)
    aged(waiting(), 31)
    proposal_expiry.lapse_proposals()


def wait_for_next_try() -> None:
    Digest.objects.update(try_at=now() - timedelta(seconds=1))


class TestMail:
    @pytest.fixture(autouse=True)
    def on(self, mail_goes_out: None) -> None:
        pass

    def test_it_says_how_the_queue_stands(self, ada: User) -> None:
        a_day()
        assert digest.send_digest() == 1
        [message] = mail.outbox
        assert message.to == ["ada@example.org"]
        assert message.subject == "memadmin: 3 proposals wait for review, 2 of them late"
        for line in (
            "Waiting: 3",
            "Late, waiting for more than 48 hours: 2",
            "The oldest has been waiting for 696 hours.",
            "Expire unreviewed within 3 days: 1",
            "Expired unreviewed since yesterday: 1",
            "https://console.example.org/reviews/",
        ):
            assert line in message.body
        event = AuditEvent.objects.get(type="digest.sent")
        assert event.reason_code == "mail"
        assert event.counters == {"addresses": 1, "waiting": 3, "late": 2, "expiring": 1}

    def test_it_names_nobody_and_quotes_nothing(self, ada: User) -> None:
        a_day()
        digest.send_digest()
        text = words_of_mail(mail.outbox[0])
        for memory in Memory.objects.select_related("subject"):
            assert memory.statement not in text
            assert memory.subject is None or memory.subject.label not in text
            assert str(memory.pk) not in text
        assert "Tallinn" not in text
        assert ada.username not in text.replace("ada@example.org", "")

    def test_a_mail_about_nothing_is_no_mail(self, ada: User) -> None:
        assert digest.send_digest() == 0
        assert mail.outbox == []
        assert not Digest.objects.exists()

    def test_it_waits_for_its_hour(self, ada: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        waiting()
        settings.DIGEST_HOUR = 7
        monkeypatch.setattr(digest, "now", lambda: now().replace(hour=6, minute=59))
        assert digest.send_digest() == 0
        monkeypatch.setattr(digest, "now", lambda: now().replace(hour=7, minute=0))
        assert digest.send_digest() == 1

    def test_once_a_day_and_again_the_next(self, ada: User) -> None:
        waiting()
        assert [digest.send_digest(), digest.send_digest()] == [1, 0]
        Digest.objects.update(on=now().date() - timedelta(days=1))
        assert digest.send_digest() == 1
        Digest.objects.filter(on=now().date()).delete()
        Digest.objects.update(on=now().date() - timedelta(days=40))
        digest.send_digest()
        assert Digest.objects.get().on == now().date(), "of long ago nothing is kept"

    def test_a_worker_that_does_not_look_would_send_it_again(self, ada: User, monkeypatch: pytest.MonkeyPatch) -> None:
        """That it is the claim which keeps the second worker from it: whoever takes every try sends one more."""
        waiting()
        digest.send_digest()
        monkeypatch.setattr(digest, "take_try", lambda digest: True)
        assert digest.send(Digest.Way.MAIL, digest.current_figures(), now())
        assert len(mail.outbox) == 2

    def test_who_gets_it(self, ada: User, settings: Any) -> None:
        with_address(person("support"), "support@example.org")
        with_address(a_reviewer("new"), "new@example.org", is_verified=False)
        gone = with_address(a_reviewer("gone"), "gone@example.org")
        User.objects.filter(pk=gone.pk).update(is_active=False)
        other = with_address(a_reviewer("other"), "other@example.org")
        assert digest.recipients() == ["ada@example.org", "other@example.org"]
        digest.want_digest(other, wanted=False)
        assert digest.recipients() == ["ada@example.org"]
        digest.want_digest(other, wanted=True)
        assert digest.recipients() == ["ada@example.org", "other@example.org"]
        settings.DIGEST_TO = ["room@example.org"]
        assert digest.recipients() == ["room@example.org"]

    def test_one_says_on_the_page_of_health_that_one_does_not_want_it(self, ada: User) -> None:
        desk, health = signed_in(ada), reverse("reviews:health")
        assert "by e-mail to 1 address." in desk.get(health).text
        answer = desk.post(reverse("reviews:digest"), {"wanted": "no"}, follow=True)
        assert "You are unsubscribed from the daily mail." in answer.text
        assert 'value="yes">Subscribe' in answer.text
        assert digest.recipients() == []
        desk.post(reverse("reviews:digest"), {"wanted": "yes"})
        assert digest.recipients() == ["ada@example.org"]


class TestWebhook:
    def test_it_is_signed_and_says_the_same(self, receiver: type[Receiver]) -> None:
        a_day()
        assert digest.send_digest() == 1
        [(headers, body)] = receiver.taken
        told = json.loads(body)
        assert told["type"] == "reviews.digest"
        assert told["data"] == {
            "waiting": 3,
            "late": 2,
            "oldest_hours": 696,
            "expiring": 1,
            "expired": 1,
            "samples": 0,
        }
        # As a receiver checks it, by the standard's own words: id, time and body, joined by dots.
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{expected}"
        assert abs(int(headers["webhook-timestamp"]) - now().timestamp()) < 600
        assert AuditEvent.objects.get(type="digest.sent").reason_code == "webhook"

    def test_an_empty_queue_is_told_too_once(self, receiver: type[Receiver]) -> None:
        assert [digest.send_digest(), digest.send_digest()] == [1, 0]
        assert json.loads(receiver.taken[0][1])["data"]["waiting"] == 0

    @pytest.mark.parametrize("answer", [302, 404, 500])
    def test_what_is_not_taken_is_tried_again_later(
        self, receiver: type[Receiver], answer: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        receiver.answers[:] = [answer, 200]
        with caplog.at_level(logging.WARNING, "memadmin.digest"):
            assert digest.send_digest() == 0
        assert f"127.0.0.1 answered {answer}" in caplog.text
        assert "room=reviews" not in caplog.text
        assert digest.send_digest() == 0, "it is not tried again at once"
        wait_for_next_try()
        assert digest.send_digest() == 1
        first, second = receiver.taken
        assert first[0]["webhook-id"] == second[0]["webhook-id"], "a receiver can tell that it is the same"
        assert not AuditEvent.objects.filter(type="digest.sent").exclude(reason_code="webhook").exists()

    def test_nobody_listens(self, settings: Any, ada: User) -> None:
        with HTTPServer(("127.0.0.1", 0), Receiver) as server:
            settings.DIGEST_URL = f"http://127.0.0.1:{server.server_port}/"
        settings.DIGEST_SECRET = KEY
        for tries in (1, 2):
            assert digest.send_digest() == 0
            assert Digest.objects.get().tries == tries
            wait_for_next_try()
        assert "was not accepted by webhook yet" in signed_in(ada).get(reverse("reviews:health")).text

    def test_one_that_fails_keeps_the_other_from_nothing(
        self, receiver: type[Receiver], ada: User, mail_goes_out: None
    ) -> None:
        waiting()
        receiver.answers[:] = [500, 200]
        assert digest.send_digest() == 1
        assert len(mail.outbox) == 1
        wait_for_next_try()
        assert digest.send_digest() == 1
        assert len(mail.outbox) == 1

    @pytest.mark.django_db(transaction=True)
    def test_two_workers_send_it_once(self, receiver: type[Receiver]) -> None:
        with somebody_else() as one, somebody_else() as other:
            sent = [start(digest.send_digest) for start in (one, other)]
            assert sorted(each.result() for each in sent) == [0, 1]
        assert len(receiver.taken) == 1


class TestSettings:
    @pytest.mark.parametrize("secret", ["whsec_" + base64.b64encode(KEY).decode(), base64.b64encode(KEY).decode()])
    def test_a_secret(self, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OUR_SECRET", secret)
        assert environment.webhook_secret("OUR_SECRET", "OUR_URL") == KEY

    @pytest.mark.parametrize("secret", ["short", base64.b64encode(b"short").decode(), "x" * 99])
    def test_what_is_no_secret_is_refused_and_not_repeated(self, secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OUR_SECRET", secret)
        with pytest.raises(ImproperlyConfigured, match="24 to 64 random bytes") as refusal:
            environment.webhook_secret("OUR_SECRET", "OUR_URL")
        assert secret not in str(refusal.value)

    def test_a_receiver_needs_a_secret(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OUR_URL", "https://hooks.example.org/")
        with pytest.raises(ImproperlyConfigured, match="OUR_URL is set, so OUR_SECRET must be set, too"):
            environment.webhook_secret("OUR_SECRET", "OUR_URL")

    @pytest.mark.parametrize(("value", "hour"), [("", 7), ("0", 0), ("23", 23), ("24", None), ("seven", None)])
    def test_an_hour(self, value: str, hour: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MEMADMIN_DIGEST_HOUR", value)
        if hour is not None:
            assert environment.hour("MEMADMIN_DIGEST_HOUR") == hour
            return
        with pytest.raises(ImproperlyConfigured, match="an hour of the day"):
            environment.hour("MEMADMIN_DIGEST_HOUR")
