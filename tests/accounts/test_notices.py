"""Who is told of grants by e-mail, what a mail says, and what happens when no mail goes out."""

from __future__ import annotations

import logging
import smtplib
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Permission, User
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend
from django.db import IntegrityError, transaction
from django.test import Client, override_settings
from django.urls import reverse
from django.utils.timezone import now

from memadmin import audit
from memadmin.accounts import notices
from memadmin.accounts.content_access import rules
from memadmin.accounts.grants import services
from memadmin.accounts.jobs import send_notices
from memadmin.accounts.models import ContentGrant, Notice
from memadmin.audit.models import AuditEvent
from sessions_app.audit_events import SESSION_VIEWED
from sessions_app.models import SessionRecord
from tests.accounts.company import come_in, company, somebody
from tests.approvals import approve_grant, without_triggers
from tests.builders import make_session
from tests.mails import words_of_mail
from tests.people import person

SERVER = {"EMAIL_HOST": "mail.example.org"}
SMTP = "django.core.mail.backends.smtp.EmailBackend"


@pytest.fixture(autouse=True)
def mail_goes_out(settings: Any) -> None:
    settings.MAIL_SERVER, settings.CONSOLE_URL = SERVER, "https://console.example.org"


@pytest.fixture
def support(db: None) -> User:
    return person("support")


@pytest.fixture
def compliance(db: None) -> User:
    return with_address(person("compliance"), "officer@example.org")


def with_address(user: User, email: str, *, is_verified: bool = True) -> User:
    EmailAddress.objects.create(user=user, email=email, verified=is_verified, primary=True)
    return user


def asked(by: User) -> ContentGrant:
    records = [make_session("customer_1:ticket_1", ticket="T-90417"), make_session("customer_2:ticket_2")]
    return services.request_grant(
        by=by,
        record_ids=[record.pk for record in records],
        reason="legal",
        ticket="T-90417",
        explanation="The pump of customer 70933 failed.",
    )


def told_of(grant: ContentGrant) -> list[str]:
    return notices.recipients_of(notices.Due(notices.Kind.REQUESTED, grant))


def over(grant: ContentGrant) -> None:
    """Moves a grant into the past until it is over."""
    earlier = timedelta(minutes=90)
    moved = {n: getattr(grant, n) - earlier for n in ("requested_at", "opened_at", "expires_at") if getattr(grant, n)}
    with without_triggers():
        ContentGrant.objects.filter(pk=grant.pk).update(**moved)


def wait_for_next_try() -> None:
    Notice.objects.update(try_at=now() - timedelta(seconds=1))


def subjects() -> list[str]:
    return [message.subject.removeprefix("memadmin: ") for message in mail.outbox]


def test_those_who_decide_are_told_that_a_grant_waits(support: User, compliance: User) -> None:
    grant = asked(support)
    assert notices.send_notices() == 1
    [message] = mail.outbox
    assert message.to == ["officer@example.org"]
    assert message.subject == "memadmin: A grant request waits for a decision"
    assert "2 locked sessions" in message.body
    assert f"https://console.example.org{grant.get_absolute_url()}" in message.body
    event = AuditEvent.objects.get(type="grant.notice_sent")
    assert (event.object_ref, event.reason_code, event.counters) == (grant.pk, "requested", {"addresses": 1})


def test_a_mail_names_nobody_and_nothing(support: User, compliance: User) -> None:
    support.first_name, support.email = "Clerk-70933", "clerk@example.org"
    support.save()
    grant = asked(support)
    notices.send_notices()
    approve_grant(grant, by=compliance)
    over(ContentGrant.objects.get())
    notices.send_notices()
    texts = "".join(map(words_of_mail, mail.outbox))
    assert len(mail.outbox) == 2
    for word in ("customer 70933", "Clerk-70933", "clerk", support.username, "T-90417", "customer_", "pump", "legal"):
        assert word not in texts
    assert not any(str(record.pk) in texts for record in SessionRecord.objects.all())


def test_each_is_told_once(support: User, compliance: User) -> None:
    asked(support)
    assert [notices.send_notices(), notices.send_notices()] == [1, 0]


def test_what_was_decided_meanwhile_is_told_no_more(support: User, compliance: User) -> None:
    approve_grant(asked(support), by=compliance)
    assert notices.send_notices() == 0


@override_settings(GRANT_APPROVAL=False)
def test_they_are_told_when_it_opened_without_a_second_person(support: User, compliance: User) -> None:
    asked(support)
    notices.send_notices()
    assert subjects() == ["A grant opened without approval"]


@override_settings(GRANT_APPROVAL=False)
def test_they_are_told_of_that_too_when_it_is_over_already(support: User, compliance: User) -> None:
    over(ContentGrant.objects.get(pk=asked(support).pk))
    notices.send_notices()
    assert subjects() == ["A grant opened without approval", "A grant has ended and must be reviewed"]


def test_they_are_told_that_it_waits_for_review(support: User, compliance: User) -> None:
    grant = asked(support)
    notices.send_notices()
    over(approve_grant(grant, by=compliance))
    notices.send_notices()
    assert subjects()[1:] == ["A grant has ended and must be reviewed"]
    services.review_grant(grant, by=compliance, note="")
    assert notices.send_notices() == 0


def test_who_is_told(support: User, compliance: User) -> None:
    left = with_address(User.objects.create_user("left", is_active=False), "left@example.org")
    unverified = with_address(User.objects.create_user("unverified"), "unverified@example.org", is_verified=False)
    for decider in (left, unverified):
        decider.groups.set(compliance.groups.all())
    given = with_address(User.objects.create_user("given"), "given@example.org")
    given.user_permissions.add(Permission.objects.get(codename="decide_grant"))
    with_address(support, "support@example.org")
    assert told_of(asked(support)) == ["given@example.org", "officer@example.org"]


def test_who_asks_is_not_told_of_their_own_request(compliance: User) -> None:
    assert told_of(asked(compliance)) == []


@override_settings(NOTICES_TO=["privacy@example.org"])
def test_a_setting_names_who_is_told_instead(support: User, compliance: User) -> None:
    asked(support)
    notices.send_notices()
    assert mail.outbox[0].to == ["privacy@example.org"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_address_counts_once_the_company_vouches_for_it(support: User, db: None) -> None:
    officer = person("compliance")
    officer.email = "officer@tea.example"
    officer.save()
    grant = asked(support)
    assert told_of(grant) == []
    with company(somebody("o1", "officer@tea.example")):
        come_in(Client(), "o1")
    assert told_of(grant) == ["officer@tea.example"]
    with company(somebody("o1", "married@tea.example")):
        come_in(Client(), "o1")
    assert told_of(grant) == ["married@tea.example"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_address_that_went_to_somebody_else_is_theirs_alone(support: User, compliance: User) -> None:
    with_address(support, "shared@tea.example")
    compliance.email = "shared@tea.example"
    compliance.save()
    with company(somebody("o1", "shared@tea.example")):
        come_in(Client(), "o1")
    assert set(EmailAddress.objects.filter(email="shared@tea.example", verified=True)) == {
        EmailAddress.objects.get(user=compliance, email="shared@tea.example")
    }


@pytest.fixture
def nobody_listens(settings: Any) -> Iterator[None]:
    """A mail server that is away: a port of this machine on which nobody answers."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        settings.EMAIL_BACKEND = SMTP
        settings.EMAIL_HOST, settings.EMAIL_PORT = held.getsockname()
        yield


def test_a_mail_server_that_is_away_loses_nothing_and_stops_nobody(
    nobody_listens: None, support: User, compliance: User, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    grant = asked(support)
    with caplog.at_level(logging.WARNING, "memadmin.notices"):
        assert notices.send_notices() == 0
    assert caplog.messages == [f"A notice about {grant} was not sent: ConnectionRefusedError"]
    assert not AuditEvent.objects.filter(type="grant.notice_sent").exists()
    assert notices.send_notices() == 0, "it is not tried again at once"
    assert approve_grant(grant, by=compliance).opened_at

    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    over(ContentGrant.objects.get())
    wait_for_next_try()
    assert notices.send_notices() == 1
    assert subjects() == ["A grant has ended and must be reviewed"]


def test_tries_move_apart_and_never_end(nobody_listens: None, support: User, compliance: User) -> None:
    asked(support)
    waits = []
    for _ in range(8):
        wait_for_next_try()
        before = now()
        notices.send_notices()
        waits.append(round((Notice.objects.get().try_at - before) / timedelta(minutes=1)))
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


class Refusing(EmailBackend):
    """A server that takes no mail for this address."""

    def send_messages(self, messages: Any) -> int:
        raise smtplib.SMTPRecipientsRefused({"officer@example.org": (550, b"no such officer@example.org")})


@override_settings(EMAIL_BACKEND=f"{__name__}.Refusing")
def test_an_address_is_not_logged(support: User, compliance: User, caplog: pytest.LogCaptureFixture) -> None:
    asked(support)
    with caplog.at_level(logging.WARNING, "memadmin.notices"):
        notices.send_notices()
    assert "SMTPRecipientsRefused" in caplog.text
    assert "officer" not in caplog.text


class Killed(BaseException):
    """As if the process had gone at this very place."""


class Killing(EmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise Killed


def test_a_worker_that_dies_over_a_mail_loses_nothing(support: User, compliance: User, settings: Any) -> None:
    in_memory, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, f"{__name__}.Killing"
    asked(support)
    with pytest.raises(Killed):
        notices.send_notices()
    settings.EMAIL_BACKEND = in_memory
    wait_for_next_try()
    assert notices.send_notices() == 1


def test_noting_it_before_it_is_sent_would_lose_it(
    support: User, compliance: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken variant: a notice counts as sent when somebody takes it up."""
    careful = notices.claimed

    def too_early(*about: Any) -> Notice | None:
        notice = careful(*about)
        Notice.objects.update(sent_at=now())
        return notice

    in_memory, settings.EMAIL_BACKEND = settings.EMAIL_BACKEND, f"{__name__}.Killing"
    monkeypatch.setattr(notices, "claimed", too_early)
    asked(support)
    with pytest.raises(Killed):
        notices.send_notices()
    settings.EMAIL_BACKEND = in_memory
    wait_for_next_try()
    assert notices.send_notices() == 0
    assert mail.outbox == []


def test_two_workers_send_one_mail(support: User, compliance: User) -> None:
    grant = asked(support)
    due = notices.Due(notices.Kind.REQUESTED, grant)
    assert notices.claimed(due)
    assert not notices.claimed(due)


def test_mail_may_go_to_files(support: User, compliance: User, settings: Any, tmp_path: Path) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = str(tmp_path)
    asked(support)
    notices.send_notices()
    [written] = tmp_path.iterdir()
    assert "/accounts/grants/" in written.read_text()


def test_a_job_sends_them_every_few_seconds(support: User, compliance: User) -> None:
    asked(support)
    send_notices(timestamp=int(now().timestamp()))
    assert len(mail.outbox) == 1


def test_without_a_mail_server_nothing_is_tried(support: User, compliance: User, settings: Any) -> None:
    settings.MAIL_SERVER = {}
    asked(support)
    assert notices.send_notices() == 0
    assert not Notice.objects.exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, ""),
        ({"MAIL_SERVER": {}}, "MEMADMIN_MAIL_URL is not set"),
        ({"NOTICES_TO": ["privacy@example.org"]}, ""),
    ],
)
def test_the_page_says_when_nobody_is_told(
    compliance: User, changed: dict[str, Any], sentence: str, settings: Any, client: Client
) -> None:
    for name, value in changed.items():
        setattr(settings, name, value)
    client.force_login(compliance)
    text = client.get(reverse("accounts:grants")).text
    assert sentence in text
    assert ("No e-mail is sent" in text) == bool(sentence)


def test_the_page_says_that_nobody_has_a_verified_address(client: Client, db: None) -> None:
    client.force_login(person("compliance"))
    assert "MEMADMIN_NOTICES_TO is not set" in client.get(reverse("accounts:grants")).text


def test_the_page_says_that_mail_does_not_go_out(support: User, compliance: User, client: Client) -> None:
    Notice.objects.create(grant=asked(support), kind="requested", tries=2)
    client.force_login(compliance)
    assert "The mail server did not accept 1 notice" in client.get(reverse("accounts:grants")).text
    client.force_login(support)
    assert "mail server" not in client.get(reverse("accounts:grants")).text


class TestReadings:
    """That somebody opened more sessions within an hour than is usual goes the same way."""

    @pytest.fixture(autouse=True)
    def unusual(self, settings: Any) -> None:
        settings.READ_NOTICE = 2

    def read(self, reader: User, count: int) -> None:
        for number in range(count):
            record = make_session(f"customer_70933:{reader.pk}-{number}")
            with audit.acting(audit.person(reader)):
                rules.check_reading_limit(reader, [record.pk])
                audit.record_alone(SESSION_VIEWED, target=record, counters={"items": 1})

    def test_those_who_decide_are_told_once_an_hour_and_person(self, support: User, compliance: User) -> None:
        self.read(support, 4)
        assert [notices.send_notices(), notices.send_notices()] == [1, 0]
        [message] = mail.outbox
        assert message.to == ["officer@example.org"]
        assert message.subject == "memadmin: A person opened unusually many sessions"
        assert "A person opened 2 sessions within an hour" in message.body
        noticed = AuditEvent.objects.get(type="reading.noticed")
        assert f"https://console.example.org{noticed.get_absolute_url()}" in message.body
        told = AuditEvent.objects.get(type="reading.notice_sent")
        assert (told.object_ref, told.counters) == (noticed.id, {"addresses": 1})
        for word in ("customer_70933", support.username):
            assert word not in words_of_mail(message)

    def test_the_address_in_it_leads_those_who_are_told_to_who_it_was(self, support: User, compliance: User) -> None:
        self.read(support, 2)
        notices.send_notices()
        browser = Client()
        browser.force_login(compliance)
        page = browser.get(mail.outbox[0].body.split("example.org")[1].strip())
        assert page.status_code == 200
        assert "support" in page.text

    def test_who_reads_is_not_told_of_it(self, compliance: User) -> None:
        with_address(person("compliance", "reviewer"), "other@example.org")
        self.read(compliance, 2)
        notices.send_notices()
        assert [message.to for message in mail.outbox] == [["other@example.org"]]

    def test_a_mail_server_that_is_away_loses_none(
        self, nobody_listens: None, support: User, compliance: User, settings: Any
    ) -> None:
        self.read(support, 2)
        assert notices.send_notices() == 0
        settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
        assert notices.send_notices() == 0, "not before its next try"
        wait_for_next_try()
        assert notices.send_notices() == 1

    def test_what_is_a_week_old_is_left_to_the_log(self, support: User, compliance: User) -> None:
        self.read(support, 2)
        assert [due.kind for due in notices.due_at(now())] == [notices.Kind.READING]
        assert not list(notices.due_at(now() + timedelta(days=8)))

    def test_a_notice_is_about_one_thing(self, support: User, compliance: User) -> None:
        grant = asked(support)
        for columns in ({}, {"grant": grant, "event_id": uuid4()}):
            with pytest.raises(IntegrityError, match="notice_about_one_thing"), transaction.atomic():
                Notice.objects.create(kind="reading", **columns)
