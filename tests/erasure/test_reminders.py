"""Mails about requests: reminders of due dates, and alerts about cases that stand still."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils.timezone import now

from memadmin.audit.models import AuditEvent
from memadmin.erasure import reminders
from memadmin.erasure.batches import services as batches
from memadmin.erasure.mails import mail_handlers
from memadmin.erasure.models import RequestBatch, RequestNote, SubjectRequest
from memadmin.erasure.reminders import send_alerts, send_reminders
from memadmin.runs.engine import Lease, take
from memadmin.runs.models import Run
from memadmin.runs.services import resume_run
from tests.builders import make_subject
from tests.erasure.batches import approved_batch, awaiting_batch, csv_of, make_subjects, work_off_batch
from tests.erasure.builders import approved, make_request
from tests.erasure.copies import started_copy
from tests.mails import words_of_mail
from tests.people import signed_in

TO = ["officers@tea.example"]


@pytest.fixture
def officer(officer: User, settings: Any) -> User:
    settings.MAIL_SERVER, settings.NOTICES_TO = {"EMAIL_HOST": "mail"}, TO
    return officer


def test_a_reminder_is_sent_once_and_has_no_personal_data(officer: User) -> None:
    request = make_request(make_subject("una"), by=officer)
    today, days = now().date(), (request.due_on - request.received_on).days
    assert send_reminders(today) == 0
    for share, left in ((0.5, days // 2), (0.75, days // 4), (0.9, days // 10)):
        day = request.due_on - timedelta(days=left)
        assert send_reminders(day) == 1, share
        assert send_reminders(day) == 0
    assert send_reminders(request.due_on + timedelta(days=3)) == 0
    assert [message.to for message in mail.outbox] == [TO] * 3
    assert not any("una" in words_of_mail(message) for message in mail.outbox)
    assert f"{days // 10} days left" in mail.outbox[-1].body
    assert request.notes.filter(code=RequestNote.Code.REMINDED).count() == 3


def test_what_a_mail_server_refuses_is_sent_later_and_stops_no_other(
    officer: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [make_request(make_subject(key), by=officer) for key in ("una", "bob")]
    day = max(request.due_on for request in requests)
    send, refusals = mail.EmailMessage.send, iter([True, False, False])

    def refuse_once(message: mail.EmailMessage, *args: Any, **named: Any) -> int:
        if next(refusals):
            raise ConnectionRefusedError
        return send(message, *args, **named)

    monkeypatch.setattr(mail.EmailMessage, "send", refuse_once)
    assert send_reminders(day) == 1
    assert send_reminders(day) == 1
    assert sorted(SubjectRequest.objects.values_list("reminded", flat=True)) == [90, 90]


def test_an_error_at_one_request_stops_no_other(officer: User, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [make_request(make_subject(key), by=officer) for key in ("una", "bob")]
    calls = iter([True, False])

    def fail_once(*given: Any, **named: Any) -> bool:
        if next(calls):
            raise RuntimeError("an error of the program")
        return mail_handlers(*given, **named)

    monkeypatch.setattr(reminders, "mail_handlers", fail_once)
    assert send_reminders(max(request.due_on for request in requests)) == 1
    assert sorted(SubjectRequest.objects.values_list("reminded", flat=True)) == [0, 90]


def test_of_a_batch_one_reminder_is_sent_and_none_of_its_cases(officer: User, second: User) -> None:
    """Of a batch that nobody has approved, too; a request of one of its subjects by letter is reminded by itself."""
    bob, *_ = make_subjects(["bob", "una", "eve"])
    letter = make_request(bob, by=officer)
    batch = approved_batch(csv_of("bob", "una", "eve"), by=officer, second=second)
    other = awaiting_batch(csv_of("eve"), by=officer)
    assert send_reminders(batch.received_on) == 0
    assert batch.run is not None
    work_off_batch(batch)
    assert SubjectRequest.objects.filter(channel="file", closed_at=None).count() == 2
    for _ in range(2):
        send_reminders(batch.due_on)
    assert len(mail.outbox) == 3
    for about in (letter, batch, other):
        assert sum(f"{about} is due on {about.due_on:%-d %B}" in message.subject for message in mail.outbox) == 1
    assert not any("una" in words_of_mail(message) for message in mail.outbox)
    assert AuditEvent.objects.filter(type="batch.reminded", counters={"percent": 90}).count() == 2
    home = signed_in(officer).get("/").content.decode()
    assert f"{batch} is overdue" not in home
    RequestBatch.objects.update(due_on=now().date() - timedelta(days=1))
    SubjectRequest.objects.update(due_on=now().date() - timedelta(days=1))
    home = signed_in(officer).get("/").content.decode()
    assert all(f"{about} is overdue" in home for about in (letter, batch, other))


def test_a_run_that_waits_for_a_person_is_told_once_and_again_when_it_stops_again(officer: User, second: User) -> None:
    request = approved(make_subject("una"), by=officer, second=second)
    assert send_alerts() == 0
    stop(request)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert "stands still" in mail.outbox[0].subject
    assert "una" not in words_of_mail(mail.outbox[0])
    assert request.run is not None
    resume_run(request.run, by=officer)
    assert send_alerts() == 0
    stop(request)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert request.notes.filter(code=RequestNote.Code.ALERTED).count() == 2


def test_a_batch_that_stands_still_is_told_once_and_again_when_it_stops_again(officer: User, second: User) -> None:
    make_subjects(["una"])
    batch = approved_batch(csv_of("una"), by=officer, second=second)
    assert batch.run is not None
    assert send_alerts() == 0
    fail(batch.run)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert f"{batch} stands still" in mail.outbox[0].subject
    assert batch.get_absolute_url() in mail.outbox[0].body
    assert "una" not in words_of_mail(mail.outbox[0])
    resume_run(batch.run, by=officer)
    assert send_alerts() == 0
    take_now(batch.run).stop("A person has to decide.")
    assert [send_alerts(), send_alerts()] == [1, 0]


def test_a_failed_count_of_an_open_batch_is_told_once(officer: User) -> None:
    make_subjects(["una"])
    batch = batches.upload(csv_of("una"), name="a.csv", ground="consent", note="", by=officer)
    assert batch.preview_run is not None
    fail(batch.preview_run)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert f"{batch} stands still" in mail.outbox[0].subject
    page = signed_in(officer).get(batch.get_absolute_url()).content.decode()
    assert "An error of the type ValueError" in page
    batch = batches.count_again(batch, by=officer)
    assert batch.preview_run is not None
    fail(batch.preview_run)
    batches.cancel(batch, by=officer)
    assert send_alerts() == 0


def test_a_failed_copy_is_told_once(officer: User, copies_folder: Path) -> None:
    copy = started_copy(make_subject("una"), by=officer)
    fail(copy.run)
    assert [send_alerts(), send_alerts()] == [1, 0]
    assert f"{copy.request} stands still" in mail.outbox[0].subject


def test_of_many_that_stopped_some_are_told_in_a_round_and_none_after_a_refusal(
    officer: User, second: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("una", "bob", "eve"):
        stop(approved(make_subject(key), by=officer, second=second))
    send = mail.EmailMessage.send
    with monkeypatch.context() as refusing:
        tries: list[int] = []

        def refuse(message: mail.EmailMessage, *args: Any, **named: Any) -> int:
            tries.append(1)
            raise ConnectionRefusedError

        refusing.setattr(mail.EmailMessage, "send", refuse)
        assert (send_alerts(), len(tries)) == (0, 1)
    assert mail.EmailMessage.send == send
    monkeypatch.setattr("memadmin.erasure.reminders.MOST_ALERTS", 2)
    assert [send_alerts(), send_alerts(), send_alerts()] == [2, 1, 0]


def stop(request: SubjectRequest) -> None:
    assert request.run is not None
    take_now(request.run).stop("A person has to decide.")
    request.run.refresh_from_db()


def fail(run: Run) -> None:
    take_now(run).end(Run.State.FAILED, reason="An error of the type ValueError; the worker's log has the details.")
    run.refresh_from_db()


def take_now(run: Run) -> Lease:
    Run.objects.filter(pk=run.pk).update(retry_at=None)
    lease = take(run.pk)
    assert lease is not None
    return lease
