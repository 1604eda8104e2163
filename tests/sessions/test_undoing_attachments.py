"""Attaching and detaching a session needs no password, and is undone exactly."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app.models import SessionRecord, Subject
from sessions_app.views import sessions as views
from tests.builders import make_session, make_subject
from tests.people import person, signed_in

pytestmark = pytest.mark.django_db

UNDO = reverse("sessions:attachment-undo")


@pytest.fixture
def console() -> Client:
    """Signed in long ago, so that nothing that asks for the password again would be done."""
    return signed_in(person("support"))


@pytest.fixture
def ada() -> Subject:
    return make_subject("ada")


def post(console: Client, name: str, *records: SessionRecord, **given: str) -> Any:
    sent = {"session": [str(record.pk) for record in records], "next": reverse("sessions:subjects"), **given}
    answer: Any = console.post(reverse(name), sent, follow=True)
    assert answer.redirect_chain, "it was not done"
    return answer


def attach(console: Client, *records: SessionRecord) -> Any:
    return post(console, "sessions:attach", *records, kind="user", key="ada")


def state(record: SessionRecord) -> tuple[Subject | None, str]:
    record.refresh_from_db()
    return record.subject, record.subject_source


def test_attachment_is_undone_to_each_previous_subject_and_source(console: Client, ada: Subject) -> None:
    other = make_subject("other")
    none = make_session("none")
    by_pattern = make_session("pattern", subject=other, subject_source="pattern")
    page = attach(console, none, by_pattern)
    assert (state(none), state(by_pattern)) == ((ada, "operator"), (ada, "operator"))
    assert "2 sessions attached." in page.text
    assert f'action="{UNDO}"' in page.text
    assert "Undone: 2 sessions as before." in post(console, "sessions:attachment-undo").text
    assert (state(none), state(by_pattern)) == ((None, ""), (other, "pattern"))
    events = AuditEvent.objects.filter(type="session.attachment_undone")
    assert sorted(event.counters["sessions"] for event in events) == [1, 1]
    assert {event.subject_ref for event in events} == {other.pk, None}


def test_detachment_is_undone(console: Client, ada: Subject) -> None:
    record = make_session(subject=ada, subject_source="client")
    page = post(console, "sessions:detach", record)
    assert state(record) == (None, "operator")
    assert f'action="{UNDO}"' in page.text
    post(console, "sessions:attachment-undo")
    assert state(record) == (ada, "client")
    # Once.
    assert "can no longer be undone" in post(console, "sessions:attachment-undo").text
    assert state(record) == (ada, "client")


def test_what_somebody_changed_since_stays_and_is_told(console: Client, ada: Subject) -> None:
    mine, theirs = make_session("mine"), make_session("theirs")
    attach(console, mine, theirs)
    other = make_subject("other")
    SessionRecord.objects.filter(pk=theirs.pk).update(subject=other)
    page = post(console, "sessions:attachment-undo")
    assert "Undone for 1 session; 1 session changed since, and stayed." in page.text
    assert (state(mine)[0], state(theirs)[0]) == (None, other)


def test_undo_is_for_the_browser_that_did_it_and_for_a_while(
    console: Client, ada: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = make_session()
    attach(console, record)
    post(signed_in(person("support", "reviewer")), "sessions:attachment-undo")
    assert state(record)[0] == ada
    monkeypatch.setattr(views, "UNDO_WITHIN", timedelta(0))
    assert "can no longer be undone" in post(console, "sessions:attachment-undo").text
    assert state(record)[0] == ada


def test_undo_brings_nothing_back_to_an_erased_subject(console: Client, ada: Subject) -> None:
    other = make_subject("other")
    record = make_session(subject=other)
    attach(console, record)
    Subject.objects.filter(pk=other.pk).update(erased_at="2026-01-01T00:00Z")
    answer = console.post(UNDO)
    assert answer.status_code == 409
    assert state(record)[0] == ada


def test_erased_session_is_not_counted(console: Client, ada: Subject) -> None:
    record = make_session()
    attach(console, record)
    SessionRecord.objects.filter(pk=record.pk).update(erased_at="2026-01-01T00:00Z")
    assert "Undone for 0 sessions; 1 session changed since" in post(console, "sessions:attachment-undo").text
