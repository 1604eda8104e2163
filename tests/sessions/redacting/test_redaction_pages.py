"""Pages of a redaction: preview, request, and result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.urls import reverse

from memadmin.audit.models import AuditEvent
from sessions_app.models import Redaction, SessionRecord, SessionStore
from sessions_app.redaction import services
from tests.accounts.factors import let_proof_age
from tests.agents import add_items, assistant, in_sdk, user
from tests.approvals import shown
from tests.builders import make_subject
from tests.people import person, signed_in, signed_in_by_password
from tests.runs.working import work_off

SECRET = "sk-live-4711"
GIVEN = {"text": SECRET, "reason": "leaked_secret", "explanation": "it was in the chat"}


@pytest.fixture
def record(kept_main_store: SessionStore) -> SessionRecord:
    add_items("s", user(f"My key is {SECRET}"), assistant("Thank you."))
    subject = make_subject("customer_1")
    SessionRecord.objects.filter(session_id="s").update(subject=subject)
    return SessionRecord.objects.select_related("subject", "store").get(session_id="s")


@pytest.fixture
def officer(record: SessionRecord) -> Client:
    return signed_in(person("compliance"))


def read() -> list[Any]:
    return list(in_sdk(lambda tables: tables.session("s").get_items()))


def of_session(record: SessionRecord) -> str:
    return reverse("sessions:redact-session", args=[record.pk])


def previewed(client: Client, address: str, **given: str) -> dict[str, str]:
    """The form after its preview; sent again, it starts the redaction."""
    page = client.post(address, {**GIVEN, **given})
    assert page.status_code == 200
    typed = {"typed": page.context["confirmation"]} if page.context["must_be_typed"] else {}
    return {**GIVEN, **given, "looked": page.context["token"], "redact": "yes", **typed}


def test_the_question_for_the_password_names_the_step_that_follows(officer: Client, record: SessionRecord) -> None:
    form = previewed(officer, of_session(record))
    confirming = signed_in_by_password(User.objects.get())
    let_proof_age(confirming)
    for given, step in ((GIVEN, "preview a redaction"), (form, "redact text in sessions")):
        page = confirming.post(of_session(record), given)
        assert (page.status_code, f"Confirm your password to {step}." in page.text) == (422, True)
    assert not Redaction.objects.exists()


def test_what_would_go_is_said_before_anything_is_done(officer: Client, record: SessionRecord) -> None:
    page = officer.post(of_session(record), GIVEN)
    assert "1 occurrence in 1 item" in " ".join(page.text.split())
    assert not Redaction.objects.exists()
    assert AuditEvent.objects.filter(type="redaction.previewed").count() == 1
    assert "My key is <del>sk-live-4711</del><ins>[redacted]</ins>" in page.text


def test_sent_again_it_is_done_and_the_page_tells(officer: Client, record: SessionRecord) -> None:
    answer = officer.post(of_session(record), previewed(officer, of_session(record)))
    asked = Redaction.objects.get()
    assert answer["Location"] == asked.get_absolute_url()
    assert SECRET not in answer["Location"]
    waiting = officer.get(answer["Location"])
    assert 'hx-trigger="every 2s"' in waiting.text
    work_off()
    page = officer.get(answer["Location"])
    told = " ".join(page.text.split())
    assert "1 occurrence in 1 item" in told
    assert "The history can still be replayed" in told
    assert 'hx-trigger="every 2s"' not in page.text
    assert read()[0] == user("My key is [redacted]")
    assert SECRET not in page.text
    timeline = officer.get(record.get_absolute_url())
    assert "[redacted]" in timeline.text
    assert ">redacted</span>" in timeline.text


def test_nothing_is_done_without_looking_or_with_another_text(officer: Client, record: SessionRecord) -> None:
    page = officer.post(of_session(record), {**GIVEN, "redact": "yes"})
    assert page.status_code == 200
    assert "look at the preview first" in page.text
    form = previewed(officer, of_session(record))
    page = officer.post(of_session(record), {**form, "looked": f"{form['looked']}x"})
    assert "look at the preview first" in page.text
    page = officer.post(of_session(record), {**form, "text": "My key"})
    assert "The form changed since the preview" in page.text
    assert not Redaction.objects.exists()


def test_one_item_and_only_as_it_was_looked_at(officer: Client, record: SessionRecord) -> None:
    item_id = officer.get(record.get_absolute_url()).context["page"].items[0].id
    address = reverse("sessions:redact-item", args=[record.pk, item_id])
    assert officer.get(address).status_code == 200
    form = previewed(officer, address, text="")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE agent_messages SET message_data = %s WHERE id = %s", [json.dumps(user("new")), item_id])
    assert "What would be redacted changed since the preview" in officer.post(address, form).text
    answer = officer.post(address, previewed(officer, address, text=""))
    work_off()
    assert officer.get(answer["Location"]).status_code == 200
    assert read() == [user("[redacted]"), assistant("Thank you.")]


def test_all_sessions_of_a_subject(officer: Client, record: SessionRecord) -> None:
    assert record.subject
    address = reverse("sessions:redact-subject", args=[record.subject.pk])
    assert address in officer.get(record.subject.get_absolute_url()).text
    page = officer.post(address, GIVEN)
    assert page.context["preview"].found_sessions == 1
    answer = officer.post(address, previewed(officer, address))
    work_off()
    assert "1 session" in officer.get(answer["Location"]).text
    assert read()[0] == user("My key is [redacted]")


def test_what_is_wrong_is_a_sentence_and_nothing_typed_is_lost(officer: Client, record: SessionRecord) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({"text": ""}, "Enter the text."),
        ({"text": "ab"}, "at least 3 characters"),
        ({"reason": ""}, "Choose a reason"),
        ({"reason": "fun"}, "This reason does not exist"),
        ({"text": "a\0bcd"}, "."),
    ]
    for wrong, sentence in cases:
        page = officer.post(of_session(record), {**GIVEN, **wrong})
        assert page.status_code == 422, wrong
        assert sentence in page.text, wrong
        assert "it was in the chat" in page.text, wrong
        assert not Redaction.objects.exists(), wrong


def test_who_may_not_redact_sees_no_way_to_it(operator: Client, record: SessionRecord) -> None:
    page = operator.get(record.get_absolute_url())
    assert "redact" not in page.text.lower()
    assert operator.get(of_session(record)).status_code == 403


def test_locked_and_sealed_sessions_of_a_subject_are_not_looked_into_without_a_grant(
    officer: Client, record: SessionRecord
) -> None:
    SessionRecord.objects.filter(pk=record.pk).update(is_sensitive=True)
    assert record.subject
    address = reverse("sessions:redact-subject", args=[record.subject.pk])
    page = officer.post(address, GIVEN)
    assert (page.context["preview"].unseen, page.context["preview"].items) == (1, 0)
    assert "needs a grant" in page.text
    # The number of places is unknown, so a second person decides.
    officer.post(address, previewed(officer, address))
    work_off()
    assert read()[0] == user(f"My key is {SECRET}")
    asked = Redaction.objects.get()
    services.approve_redaction(asked, by=person("compliance", "support"), typed="redact", shown=shown(asked))
    work_off()
    assert read()[0] == user("My key is [redacted]")


def test_the_log_leads_to_what_came_of_it(officer: Client, record: SessionRecord) -> None:
    officer.post(of_session(record), previewed(officer, of_session(record)))
    asked = Redaction.objects.get()
    page = officer.get(reverse("audit:list"))
    assert asked.get_absolute_url() in page.text
    assert SECRET not in page.text
